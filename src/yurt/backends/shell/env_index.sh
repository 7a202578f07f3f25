# Lets uv use the package indexes of pip's settings, which uv itself does not read. Only definitions.
use_pip_settings() { # use_pip_settings PYTHON: sets variables of uv, unless uv has settings of its own; and $no_index
  no_index=
  if grep -s -q -E '^ *(\[\[index|(extra-)?index|find-links|no-index)' "${XDG_CONFIG_HOME:-$HOME/.config}/uv/uv.toml" /etc/uv/uv.toml; then return; fi
  eval "$("$1" -I -c '
import configparser, os, shlex

home, variables = os.path.expanduser("~"), os.environ
files = [each + "/pip/pip.conf" for each in reversed(variables.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":"))]
files += ["/etc/pip.conf", home + "/.pip/pip.conf", (variables.get("XDG_CONFIG_HOME") or home + "/.config") + "/pip/pip.conf"]
named = variables.get("PIP_CONFIG_FILE")
files = [] if named == os.devnull else files + [named] * bool(named)
found = {}
for file in files:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read(file, encoding="utf-8")
    except (OSError, ValueError, configparser.Error):
        continue
    for section in ("global", "install"):
        if parser.has_section(section):
            found.update((name.replace("_", "-"), value) for name, value in parser.items(section))
found.update((name[4:].lower().replace("_", "-"), value) for name, value in variables.items() if name.startswith("PIP_"))
words = {name: (found.get(name) or "").split() for name in ("index-url", "extra-index-url", "find-links", "trusted-host")}
settings = {"UV_INSECURE_HOST": " ".join(words["trusted-host"]), "SSL_CERT_FILE": found.get("cert")}
if not any(variables.get("UV_" + each) for each in ("INDEX", "DEFAULT_INDEX", "INDEX_URL", "EXTRA_INDEX_URL", "FIND_LINKS")):
    settings["UV_DEFAULT_INDEX"] = "".join(words["index-url"][:1])
    settings["UV_INDEX"] = " ".join(words["extra-index-url"])
    settings["UV_FIND_LINKS"] = ",".join(words["find-links"])
    if (found.get("no-index") or "").lower() in ("1", "true", "yes", "on"):
        print("no_index=--no-index")
for name, value in settings.items():
    if value and not variables.get(name):
        print("export %s=%s" % (name, shlex.quote(value)))
')"
}
