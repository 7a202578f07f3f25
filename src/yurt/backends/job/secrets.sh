# A secret is in no file and in no record of Slurm's: one share of it is in a file secret.*, the other came with the
# environment of the job. Each alone is noise; only here they meet, and the value never is an argument of a program.
hide_shares() { # keeps the shares of the environment for with_shares, where no program sees them
  share=${YURT_SHARE-} # the file with the shares that fit them: each submission has its own
  unset YURT_SHARE
  for name in $secrets; do
    eval "share_$name=\${YURT_SHARE_$name-}"
    unset "YURT_SHARE_$name"
  done
}
with_shares() { # with_shares COMMAND…, in a subshell: with what a start of this run needs of its secrets
  [ -z "$secrets" ] || export "YURT_SHARE=$share"
  for name in $secrets; do eval "export YURT_SHARE_$name=\$share_$name"; done
  "$@"
}
drop_shares() { # drop_shares [FILE]: of one submission; or all, when the run has no further start
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
bring_secrets() { # bring_secrets [NONCE]: the values, in variables that no program sees; without a NONCE this terminal's own
  { set +x; } 2> /dev/null # a trace of this would be the value
  [ -n "$secrets" ] || return 0
  if [ -n "${YURT_INSTEAD-}" ]; then # yurt shell: a person may print and trace what they like
    echo "yurt: the secrets of this run are not in this shell: $secrets" >&2
    secrets=
    return
  fi
  # shellcheck disable=SC3045 # dash, bash, ksh and busybox have it
  ulimit -S -c 0 # a core file would hold the value too
  yurt_file=${sweep:-$run}/${YURT_SHARE-}
  unset YURT_SHARE
  yurt_had=${LC_ALL+yes} yurt_locale=${LC_ALL-}
  LC_ALL=C # bytes, not letters
  for yurt_name in $secrets; do
    if [ -z "${1-}" ]; then
      eval "[ -n \"\${$yurt_name+set}\" ]" || fail "the secrets of this run are not available by hand: set and export $yurt_name"
      eval "yurt_secret_$yurt_name=\$$yurt_name"
      continue
    fi
    eval "yurt_share=\${YURT_SHARE_$yurt_name-}"
    unset "YURT_SHARE_$yurt_name"
    [ -n "$yurt_share" ] || fail "the secret $yurt_name did not arrive: this site keeps the environment of sbatch from its jobs (--export, SBATCH_EXPORT or a plugin)"
    [ -r "$yurt_file" ] || fail "the secret $yurt_name did not arrive: $yurt_file is gone"
    yurt_value=$(printf '%s\n' "$yurt_share" | LC_ALL=C awk -v "name=$yurt_name" "$join_share" - "$yurt_file") ||
      fail "the secret $yurt_name did not arrive whole"
    # shellcheck disable=SC2059 # the value is in octal, as a format has it; the x keeps newlines at the end
    yurt_value=$(printf "${yurt_value}x")
    eval "yurt_secret_$yurt_name=\${yurt_value%x}"
  done
  if [ -n "$yurt_had" ]; then LC_ALL=$yurt_locale; else unset LC_ALL; fi
  unset yurt_name yurt_file yurt_share yurt_value yurt_had yurt_locale
  [ -z "${1-}" ] || [ "$shares" = stay ] || (cd "$run" && drop_shares)
}
give_secrets() { # give_secrets [NAME]...: to what is started from here on; uses and changes no other variable
  while [ $# -gt 0 ]; do
    eval "export $1=\$yurt_secret_$1"
    unset "yurt_secret_$1"
    shift
  done
}
