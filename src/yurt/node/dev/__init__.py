"""The dev node, inside its job: holds the workspace, keeps its backups and serves ssh."""
