"""Weighted tasks, names, on_start and on_stop, answers that the user judges."""
import os

from locust import HttpUser, constant, events, task
from locust.exception import StopUser

left = 3


class Shopper(HttpUser):
    host = os.environ["BASE"]
    wait_time = constant(0.001)
    rounds = 0

    def on_start(self):
        self.client.get("/shop/", name="start")

    def on_stop(self):
        global left
        self.client.get("/shop/", name="stop")
        left -= 1
        if left == 0:
            self.environment.runner.quit()

    @task
    def visit(self):
        self.rounds += 1
        self.client.get(f"/shop/items?page={self.rounds}", name="page")
        with self.client.get("/_/status/404", name="missing", catch_response=True) as response:
            if response.status_code == 404:
                response.success()
        with self.client.get("/", name="home", catch_response=True) as response:
            if self.rounds % 2 == 0:
                response.failure("even")
        self.client.get("/_/status/500", name="broken")
        if self.rounds == 10:
            raise StopUser()


@events.quitting.add_listener
def _(environment, **_kwargs):
    environment.process_exit_code = 1 if environment.stats.total.fail_ratio > 0.3 else 0
