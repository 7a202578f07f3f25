# A race is won once. In the folder of its claims, ITEM.1 names the holder of an item, for good; ITEM.2 counts only if
# ITEM.1.dead exists, and so on. Needs gate.sh before it.
claim() { # claim ITEM CANDIDATE: prints the holder of an item, which is this candidate if nobody was before it
  round=1
  while read_written "$1.$round.dead" > /dev/null; do round=$((round + 1)); done
  write_once "$1.$round" "$2"
}
