"""Redirects: a request is its whole chain, and one that is held is no failure."""
from _users import Users
from locust import task


class Follower(Users):
    @task
    def follow(self):
        self.client.get("/shop/redirect/2", name="chain")
        self.client.get("/shop/redirect/2", name="held", allow_redirects=False)
        with self.client.get("/shop/redirect/1", name="judged", allow_redirects=False, catch_response=True) as answer:
            if answer.headers["Location"] == "":
                answer.failure("nowhere")
        self.end_round()
