"""Many addresses under one name, statuses that are no success, and a host that is not there."""
from _users import Users
from locust import task


class Walker(Users):
    @task
    def walk(self):
        for item in range(1, 4):
            self.client.get(f"/shop/items/{item}", name="/shop/items/[id]")
        self.client.get("/_/status/503", name="away")
        self.client.get("http://127.0.0.1:1/", name="nowhere")
        self.end_round()
