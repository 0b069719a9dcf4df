"""Runs in a browser: `dnsrig browse`.

A web application on the loopback interface. It reads run directories as the report does, and draws the report's own
charts. All that it writes are notes. ``views`` has a file a page. What decides (`index`, `interactive`, `thin`,
`progress`, `security`) knows nothing of HTTP; `app` and ``views`` are the shell around it.
"""
