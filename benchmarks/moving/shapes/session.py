"""A login in on_start, whose cookie a user keeps for all of its rounds."""
import re

from _users import Users
from locust import task


class Member(Users):
    def on_start(self):
        form = self.client.get("/shop/login", name="form")
        token = re.search(r'name="token" value="([^"]+)"', form.text).group(1)
        self.client.post("/shop/login", {"user": "ann", "password": "pw-ann", "token": token}, name="login")

    @task
    def account(self):
        with self.client.get("/shop/account", name="account", catch_response=True) as answer:
            if answer.json()["user"] != "ann":
                answer.failure("somebody else")
        self.end_round()
