"""A Flask application: /hello is light, /report computes."""

from flask import Flask
from work import compute

from offlock.middleware import WSGI

app = Flask(__name__)
app.wsgi_app = WSGI(app.wsgi_app)  # type: ignore[method-assign]


@app.route("/hello")
def hello() -> str:
    compute(0.0001)
    return "ok"


@app.route("/report")
def report() -> str:
    compute(0.04)
    return "ok"
