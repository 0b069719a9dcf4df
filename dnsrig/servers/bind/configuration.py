"""How BIND's configuration begins, whatever it is: where it keeps files, and where it listens."""

BEGIN = """\
{% if p.answers_over_tls %}
tls served { key-file "{{ p.private_key }}"; cert-file "{{ p.certificate }}"; };
{% endif %}
options {
    directory "{{ p.seen_state }}";
    pid-file "{{ p.seen_state }}/named.pid";
    session-keyfile "{{ p.seen_state }}/session.key";
{% for address in p.addresses %}
    listen-on{{ "-v6" if address.version == 6 }} port {{ port }} { {{ address }}; };
{% if p.answers_over_tls %}
    listen-on{{ "-v6" if address.version == 6 }} port {{ keys.XOT_PORT }} tls served { {{ address }}; };
{% endif %}
{% endfor %}
"""
"""With the options not closed; needs the placement as `p`, the `port`, and `keys`."""
