"""Who is asked for: Basic credentials, those that are wrong, and none."""
from _users import Users
from locust import task


class Holder(Users):
    @task
    def knock(self):
        self.client.get("/shop/private", name="known", auth=("ann", "pw-ann"))
        self.client.get("/shop/private", name="unknown", auth=("ann", "wrong"))
        with self.client.get("/shop/private", name="nobody", catch_response=True) as answer:
            if answer.status_code == 401:
                answer.success()
        self.end_round()
