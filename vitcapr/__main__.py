"""``python -m vitcapr``: the same program as ``vitcapr``."""

from vitcapr.commands.main import main

main()
