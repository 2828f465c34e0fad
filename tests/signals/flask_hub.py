"""Flask-WebSub's hub (PyPI: flask-websub, celery) as a process: `python flask_hub.py ADDRESS DATABASE`. It prints its port.

Its tasks run in the call, so that it needs no broker. Everything else is as in the package.

"""

import sys


def serve(address: str, database: str) -> None:
    from celery import Celery
    from flask import Flask
    from flask_websub.hub import Hub, SQLite3HubStorage
    from werkzeug.serving import make_server

    celery = Celery("hub", broker="memory://")
    celery.conf.task_always_eager = True
    hub = Hub(SQLite3HubStorage(database), celery)
    app = Flask("hub")
    app.config["PUBLISH_SUPPORTED"] = True
    app.register_blueprint(hub.build_blueprint(url_prefix="/hub"))
    server = make_server(address, 0, app, threaded=True)
    print(server.port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    serve(*sys.argv[1:])
