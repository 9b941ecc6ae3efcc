"""Web servers and what stands before them: bodies compared by a client of threads, then a load."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

from tests.programs import inputs
from tests.programs.harness import SCRIPTS, Case, Failure, Run, answers, free_port

PYTHON = "/usr/bin/python3"
SERVERS = "servers and databases"


def site(folder: Path) -> None:
    rng = random.Random(11)
    paths = []
    for number in range(150):
        name = f"{rng.choice(inputs.WORDS)}-{number}.{rng.choice(('html', 'txt', 'css', 'json'))}"
        place = folder / "site" / f"part{number % 7}"
        place.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(inputs.text(rng, rng.choice((3, 40, 400, 4000))))
        paths.append(f"/part{number % 7}/{name}")
    (folder / "paths").write_text("\n".join([*paths, "/absent"]))
    (folder / "site" / "index.html").write_text(inputs.text(rng, 60))


def read_and_load(run: Run, port: int, requests: int, connections: int) -> None:
    read = (PYTHON, str(SCRIPTS / "http_read.py"), str(port), str(run.input / "paths"), "3")
    run.step("read", *read)
    for number, extra in enumerate((("-k",), ("-k", "-H", "Accept-Encoding: gzip"), ())):
        count = requests if extra else requests // 8
        text = run.step(
            f"load-{number}", "ab", "-q", "-n", str(count), "-c", str(connections), *extra,
            f"http://127.0.0.1:{port}/", compared=False,
        )  # fmt: skip
        words = [line.split() for line in text.splitlines()]
        if ["Complete", "requests:", str(count)] not in words or "Non-2xx" in text:
            raise Failure(f"run '{run.name}': the load was not answered\n{text}")
        if ["Failed", "requests:", "0"] not in words:
            raise Failure(f"run '{run.name}': answers that differ\n{text}")
    run.step("read-again", *read)


NGINX = """
daemon off; worker_processes 2; pid {scratch}/pid; error_log {scratch}/error.log;
{user}
events {{ worker_connections 1024; }}
http {{
    access_log {scratch}/access.log; types {{ text/html html; text/css css; text/plain txt; }}
    client_body_temp_path {scratch}/body; proxy_temp_path {scratch}/proxy;
    fastcgi_temp_path {scratch}/fastcgi; uwsgi_temp_path {scratch}/uwsgi;
    scgi_temp_path {scratch}/scgi; keepalive_requests 1000000;
    gzip on; gzip_types *; gzip_comp_level 5; gzip_min_length 100;
    proxy_cache_path {scratch}/cache keys_zone=kept:1m;
    server {{ listen 127.0.0.1:{port}; root {site}; }}
}}
"""


def nginx(run: Run) -> None:
    port = free_port()
    user = "user root;" if os.geteuid() == 0 else ""
    config = run.scratch / "nginx.conf"
    config.write_text(
        NGINX.format(scratch=run.scratch, port=port, site=run.input / "site", user=user)
    )
    command = ("nginx", "-c", str(config), "-e", str(run.scratch / "start.log"))
    with run.server("nginx", *command, ready=lambda: answers(port)) as child:
        read_and_load(run, port, 20000, 200)
        child.send_signal(signal.SIGHUP)  # new workers, the old ones end
        time.sleep(0.5)
        read_and_load(run, port, 8000, 50)
        child.send_signal(signal.SIGQUIT)
        run.finish("nginx", child)


APACHE = """
ServerName localhost
Listen 127.0.0.1:{port}
PidFile {scratch}/pid
DefaultRuntimeDir {scratch}
ErrorLog {scratch}/error.log
{modules}
LogFormat "%h %t %U %>s %B %D %{{User-Agent}}i" all
CustomLog {scratch}/access.log all
DocumentRoot {site}
DirectoryIndex index.html
TypesConfig /dev/null
AddType text/html .html
AddType text/plain .txt
AddType text/css .css
AddType application/json .json
AddOutputFilterByType DEFLATE text/html text/plain text/css application/json
SetEnvIf Request_URI "part([0-9])" PART=$1
Header set X-Part %{{PART}}e env=PART
RewriteEngine on
RewriteRule "^/same/(.*)" "/$1" [PT]
<Directory {site}>
    Require all granted
</Directory>
MaxKeepAliveRequests 0
GracefulShutdownTimeout 30
# Each process has threads for all connections: it closes those that wait for their next request
# when it has too few, and when it ends because there are too many.
ServerLimit 4
StartServers 2
ThreadLimit 256
ThreadsPerChild 256
MaxRequestWorkers 1024
MinSpareThreads 1
MaxSpareThreads 1024
"""
APACHE_MODULES = "/usr/lib/apache2/modules"
# What else is needed is built in.
LOADED = (
    "mpm_event", "authz_core", "deflate", "dir", "filter", "headers", "mime", "rewrite", "setenvif",
)  # fmt: skip


def apache(run: Run) -> None:
    port = free_port()
    loaded = (f"LoadModule {m}_module {APACHE_MODULES}/mod_{m}.so" for m in LOADED)
    place = {"scratch": run.scratch, "port": port, "site": run.input / "site"}
    config = run.scratch / "apache.conf"
    config.write_text(APACHE.format(**place, modules="\n".join(loaded)))
    command = ("apache2", "-D", "FOREGROUND", "-f", str(config))
    with run.server("apache2", *command, ready=lambda: answers(port)) as child:
        read_and_load(run, port, 8000, 200)
        child.send_signal(signal.SIGUSR1)  # new processes, the old ones end
        time.sleep(0.5)
        read_and_load(run, port, 3000, 50)
        child.send_signal(signal.SIGWINCH)  # end when the connections have
        run.finish("apache2", child)


LIGHTTPD = """
server.modules = ("mod_deflate", "mod_status", "mod_accesslog", "mod_dirlisting")
server.document-root = "{site}"
server.bind = "127.0.0.1"
server.port = {port}
server.max-keep-alive-requests = 1000000
server.errorlog = "{scratch}/error.log"
accesslog.filename = "{scratch}/access.log"
deflate.mimetypes = ("text/", "application/")
deflate.allowed-encodings = ("gzip")
mimetype.assign = (".html" => "text/html", ".css" => "text/css", "" => "text/plain")
index-file.names = ("index.html")
"""


def lighttpd_at(run: Run, port: int) -> tuple[str, ...]:
    config = run.scratch / "lighttpd.conf"
    config.write_text(LIGHTTPD.format(scratch=run.scratch, port=port, site=run.input / "site"))
    return ("lighttpd", "-D", "-f", str(config))


def lighttpd(run: Run) -> None:
    port = free_port()
    with run.server("lighttpd", *lighttpd_at(run, port), ready=lambda: answers(port)) as child:
        read_and_load(run, port, 30000, 200)
        child.send_signal(signal.SIGINT)  # end when the connections have
        run.finish("lighttpd", child)


HAPROXY = """
global
    maxconn 2000
    nbthread 2
defaults
    mode http
    timeout connect 30s
    timeout client 60s
    timeout server 60s
    compression algo gzip
    compression type text/html text/plain text/css
    http-reuse always
frontend all
    bind 127.0.0.1:{port}
    http-request set-header X-Sum %[path,sha1,hex]
    http-request add-header X-Part %[path,field(2,/)]
    acl styles path_end .css
    use_backend second if styles
    default_backend first
backend first
    balance roundrobin
    server a 127.0.0.1:{back}
backend second
    server b 127.0.0.1:{back} maxconn 50
"""


def haproxy(run: Run) -> None:
    port, back = free_port(), free_port()
    config = run.scratch / "haproxy.cfg"
    config.write_text(HAPROXY.format(port=port, back=back))
    with (
        run.server("lighttpd", *lighttpd_at(run, back), ready=lambda: answers(back)),
        run.server(
            "haproxy", "haproxy", "-db", "-f", str(config), ready=lambda: answers(port)
        ) as child,
    ):
        read_and_load(run, port, 20000, 200)
        child.send_signal(signal.SIGUSR1)  # end when the connections have
        run.finish("haproxy", child)


VCL = """
vcl 4.1;
import std;
backend site {{ .host = "127.0.0.1"; .port = "{back}"; }}
sub vcl_recv {{
    set req.http.X-Part = regsub(req.url, "^/part([0-9]).*", "\\1");
    if (req.url ~ "[.]css$") {{ return (pass); }}
    unset req.http.Cookie;
}}
sub vcl_backend_response {{
    set beresp.ttl = 1h;
    set beresp.do_gzip = true;
    # ab speaks HTTP/1.0: what is streamed to it ends with the connection.
    if (bereq.url == "/") {{ set beresp.do_stream = false; }}
}}
sub vcl_deliver {{
    set resp.http.X-Hits = obj.hits;
    set resp.http.X-Where = std.tolower(req.http.X-Part + " " + server.identity);
}}
"""


def varnish(run: Run) -> None:
    """The store is too small for the site, so that objects come and go."""
    port, back = free_port(), free_port()
    config = run.scratch / "site.vcl"
    config.write_text(VCL.format(back=back))
    command = (
        "varnishd", "-F", "-a", f"127.0.0.1:{port}", "-f", str(config), "-n", f"{run.scratch}/v",
        "-j", "none", "-s", "default,2M", "-p", "vsl_space=16M",
        "-p", "thread_queue_limit=1000",
    )  # fmt: skip
    with (
        run.server("lighttpd", *lighttpd_at(run, back), ready=lambda: answers(back)),
        run.server("varnishd", *command, ready=lambda: answers(port)) as child,
    ):
        read_and_load(run, port, 12000, 200)
        child.terminate()
        run.finish("varnishd", child)


CASES = (
    Case(
        "nginx", ("nginx", "ab"), site, nginx, ("nginx", "-v"), ("nginx",),
        packages=("nginx-light", "apache2-utils"), group=SERVERS,
        what="150 files plain, gzipped and in part; 57,000 requests of 200 connections; reload",
    ),
    Case(
        "lighttpd", ("lighttpd", "ab"), site, lighttpd, ("lighttpd", "-v"), ("lighttpd",),
        packages=("lighttpd", "apache2-utils"), group=SERVERS,
        what="the same files, packed at each request; 64,000 requests of 200 connections",
    ),
    Case(
        "haproxy", ("haproxy", "lighttpd", "ab"), site, haproxy, ("haproxy", "-v"), ("haproxy",),
        packages=("haproxy", "lighttpd", "apache2-utils"), group=SERVERS,
        what="two threads before lighttpd: headers, compression; 42,000 requests",
    ),
    Case(
        "apache2", ("apache2", "ab", APACHE_MODULES), site, apache, ("apache2", "-v"), ("apache2",),
        packages=("apache2-bin", "apache2-utils"), group=SERVERS, user="www-data",
        what="150 files plain, packed at each request and in part; 23,000 requests; reload",
    ),
    Case(
        "varnish", ("varnishd", "gcc", "lighttpd", "ab"), site, varnish, ("varnishd", "-V"),
        packages=("varnish", "gcc", "libc6-dev", "lighttpd", "apache2-utils"), group=SERVERS,
        what="a cache of 2 MiB before lighttpd, VCL, objects packed; 25,500 requests",
        note="without hakmem on jemalloc, with which it is linked",
    ),
)  # fmt: skip
