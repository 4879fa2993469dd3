"""Tasks in their order, with tasks within one of them."""
from _users import Users
from locust import SequentialTaskSet, task


class Steps(SequentialTaskSet):
    @task
    def home(self):
        self.client.get("/shop/", name="home")

    @task
    class Search(SequentialTaskSet):
        @task
        def ask(self):
            self.client.get("/shop/items?page=1", name="ask")

        @task
        def leave(self):
            self.client.get("/shop/items/1", name="look")
            self.interrupt(reschedule=False)

    @task
    def buy(self):
        self.client.get("/_/status/204", name="buy")
        self.user.end_round()


class Visitor(Users):
    tasks = [Steps]
