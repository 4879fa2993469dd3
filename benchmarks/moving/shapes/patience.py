"""A timeout of a single request fails it, and the task goes on."""
from _users import Users
from locust import task


class Waiter(Users):
    @task
    def wait(self):
        self.client.get("/_/delay/2000", name="late", timeout=0.1)
        self.client.get("/_/delay/1", name="soon", timeout=5)
        self.end_round()
