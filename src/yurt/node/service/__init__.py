"""The program of a service: a job that runs something that listens, where only its user can reach it."""
