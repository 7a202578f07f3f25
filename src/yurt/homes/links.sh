# Only a definition, for scripts that write at paths in a home or read from its backups.
leads_away() { # leads_away PATH: whether a folder above a relative path is a link: another home may have sent it
  away_rest=$1 away_above=.
  while [ "$away_rest" != "${away_rest#*/}" ]; do
    away_above=$away_above/${away_rest%%/*} away_rest=${away_rest#*/}
    [ ! -h "$away_above" ] || return 0
  done
  return 1
}
