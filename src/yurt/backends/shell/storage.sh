# Reports how full storage tiers are, and what yurt itself uses. Needs tier_use.sh before it.
# arguments: MARK REPORT [FOLDER]... Input: lines "NAME PATH". REPORT is a command of the user that prints the site's own
# report; it may be empty. FOLDERs are those of yurt to measure.
mark=$1 report=$2
shift 2
own_use() { # own_use FOLDER...: a line KIND KB FILES for each kind of files; `late` if not all could be counted
  section own
  for folder; do
    shift
    [ ! -e "$folder" ] || set -- "$@" "$folder"
  done
  [ $# -gt 0 ] || return 0
  { within 20 find "$@" -printf '%k %P\n' 2> /dev/null; echo "end $?"; } | LC_ALL=C awk '
    $1 == "end" { if ($2 > 1) print "late"; next }
    {
      split($2, part, "/")
      kind = "other"
      if (part[1] == "projects") kind = part[3] == "runs" || part[3] == "sweeps" ? "runs" : "snapshots"
      else if (part[1] == "races") kind = "claims"
      else if (part[1] == "envs" || part[1] == "workspaces") kind = part[1]
      kb[kind] += $1; files[kind]++
    }
    END { for (kind in kb) printf "%s %.0f %.0f\n", kind, kb[kind], files[kind]; if (NR < 2) print "late" }' || echo late
}
while IFS=' ' read -r name path; do tier_use "$name" "$path"; done
user_quotas
[ $# -eq 0 ] || own_use "$@"
if [ -n "$report" ]; then
  section report
  LC_ALL=C within 60 sh -c "$report" 2>&1 < /dev/null
  code=$?
  section reported
  echo $code
fi
