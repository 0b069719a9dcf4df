"""``python -m dnsrig``."""

from dnsrig.cli._app import main

if __name__ == "__main__":
    main()
