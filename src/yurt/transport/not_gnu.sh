# Functions in place of tools that differ on macOS and busybox from those of GNU. Only definitions, for scripts on the local
# context: they do not reach programs that xargs, find or sh -c start.

head() { # head -c BYTES leaves the rest of a pipe unread; that of macOS and busybox reads ahead
  if [ "$1" != -c ] || [ $# -ne 2 ]; then
    command head "$@"
  elif command -v perl > /dev/null; then
    perl -e '$left = shift;
      while ($left > 0) {
        $got = sysread(STDIN, $part, $left < 65536 ? $left : 65536) or last;
        $left -= $got;
        print $part or exit 1;
      }' "$2"
  else
    dd bs=1 count="$2" 2> /dev/null
  fi
}
mv() { # mv -T FROM TO: renames a folder, never into another one
  if [ "$1" = -T ] && command -v perl > /dev/null; then
    perl -e 'rename $ARGV[1], $ARGV[2] or die "$!\n"' -- "$@"
  else
    command mv "$@"
  fi
}
timeout() { # timeout SECONDS COMMAND…: without the limit, which is for shared disks and schedulers
  shift
  "$@"
}
find() { # find … -printf FORMAT: %s %T@ %l %p %P %H %m %y
  case " $* " in *' -printf '*) ;; *) command find "$@" && return || return ;; esac
  find_roots='' find_last='' find_end=+
  case " $* " in *' ( '*) case $(command find --help 2>&1) in BusyBox*) find_end=';' ;; esac ;; esac # its + prints nothing there
  for find_each; do
    case $find_each in [-\(!]*) break ;; esac
    find_roots="$find_roots$find_each
"
  done
  for find_each; do
    shift
    case $find_last,$find_each in
      -printf,*) set -- "$@" -exec perl -MTime::HiRes=lstat -e "$find_print" "$find_roots" "$find_each" {} "$find_end" ;;
      *,-printf) ;;
      *) set -- "$@" "$find_each" ;;
    esac
    find_last=$find_each
  done
  command find "$@"
}
# shellcheck disable=SC2016 # perl expands it
find_print='
  ($roots, $format) = splice @ARGV, 0, 2;
  @roots = sort { length $b <=> length $a } split /\n/, $roots;
  for $path (@ARGV) {
    @is = lstat $path or next;
    ($root) = grep { $path eq $_ or index($path, "$_/") == 0 } @roots;
    $type = -l _ ? "l" : -d _ ? "d" : -f _ ? "f" : "o";
    %value = (s => $is[7], "T@" => sprintf("%.9f", $is[9]), l => $type eq "l" ? readlink $path : "", p => $path,
      P => substr($path, length($root) + ($path ne $root)), H => $root, m => sprintf("%o", $is[2] & 07777), y => $type);
    ($line = $format) =~ s{%(T\@|.)|\\(.)}{defined $1 ? $value{$1} // die "unknown format %$1\n" : $2 eq "0" ? "\0" : "\n"}ges;
    print $line;
  }'
