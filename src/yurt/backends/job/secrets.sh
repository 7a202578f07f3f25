# A secret is in no file and in no Slurm record: one share of it is in a file secret.*, the other in the environment
# of the job. Each alone is noise; they are joined only here, and the value is never an argument of a program.
hide_shares() { # moves the environment's shares into shell variables, for with_shares
  share=${YURT_SHARE-} # the file with the matching shares: each submission has its own
  unset YURT_SHARE
  for name in $secrets; do
    eval "share_$name=\${YURT_SHARE_$name-}"
    unset "YURT_SHARE_$name"
  done
}
with_shares() { # with_shares COMMAND…, in a subshell: exports the shares that a start of this run needs
  [ -z "$secrets" ] || export "YURT_SHARE=$share"
  for name in $secrets; do eval "export YURT_SHARE_$name=\$share_$name"; done
  "$@"
}
drop_shares() { # drop_shares [FILE]: removes those of one submission, or all after the last start
  [ -z "$secrets" ] || if [ $# -gt 0 ]; then rm -f "$1"; else rm -f @SECRET@*; fi
}
join_share='BEGIN {
  letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
  for (at = 0; at < 64; at++) value[substr(letters, at + 1, 1)] = at
}
NR == 1 { theirs = $1 }
NR > 1 && $1 == name { ours = $2 }
END {
  size = length(theirs)
  if (size == 0 || size != length(ours)) exit 3
  for (at = 1; at < size; at += 4) {
    a = b = 0
    for (step = 0; step < 4; step++) {
      a = a * 64 + value[substr(theirs, at + step, 1)]
      b = b * 64 + value[substr(ours, at + step, 1)]
    }
    for (unit = 65536; unit >= 1; unit /= 256) {
      byte = (int(a / unit) + int(b / unit)) % 256
      if (byte && over) exit 4
      if (byte) printf "\\%03o", byte
      else over++
    }
  }
  if (over < 8) exit 4
}'
bring_secrets() { # bring_secrets [NONCE]: sets unexported variables to the values; without a NONCE, from this terminal's environment
  { set +x; } 2> /dev/null # a trace would show the value
  [ -n "$secrets" ] || return 0
  if [ -n "${YURT_INSTEAD-}" ]; then # yurt shell: a user may print and trace anything
    echo "yurt: secrets of the run are not set in this shell: $secrets" >&2
    secrets=
    return
  fi
  # shellcheck disable=SC3045 # dash, bash, ksh and busybox support it
  ulimit -S -c 0 # a core file would contain the value
  yurt_file=${sweep:-$run}/${YURT_SHARE-}
  unset YURT_SHARE
  yurt_had=${LC_ALL+yes} yurt_locale=${LC_ALL-}
  LC_ALL=C # bytes, not characters
  for yurt_name in $secrets; do
    if [ -z "${1-}" ]; then
      eval "[ -n \"\${$yurt_name+set}\" ]" || fail "secret $yurt_name is not set; export it to run this script by hand"
      eval "yurt_secret_$yurt_name=\$$yurt_name"
      continue
    fi
    eval "yurt_share=\${YURT_SHARE_$yurt_name-}"
    unset "YURT_SHARE_$yurt_name"
    [ -n "$yurt_share" ] || fail "secret $yurt_name is missing: this site does not pass the environment of sbatch to jobs (--export or a plugin)"
    [ -r "$yurt_file" ] || fail "secret $yurt_name is missing: cannot read $yurt_file"
    yurt_value=$(printf '%s\n' "$yurt_share" | LC_ALL=C awk -v "name=$yurt_name" "$join_share" - "$yurt_file") ||
      fail "secret $yurt_name is incomplete"
    # shellcheck disable=SC2059 # the value is octal escapes; the x keeps trailing newlines
    yurt_value=$(printf "${yurt_value}x")
    eval "yurt_secret_$yurt_name=\${yurt_value%x}"
  done
  if [ -n "$yurt_had" ]; then LC_ALL=$yurt_locale; else unset LC_ALL; fi
  unset yurt_name yurt_file yurt_share yurt_value yurt_had yurt_locale
  [ -z "${1-}" ] || [ "$shares" = stay ] || (cd "$run" && drop_shares)
}
give_secrets() { # give_secrets [NAME]...: exports the values; uses and changes no other variable
  while [ $# -gt 0 ]; do
    eval "export $1=\$yurt_secret_$1"
    unset "yurt_secret_$1"
    shift
  done
}
