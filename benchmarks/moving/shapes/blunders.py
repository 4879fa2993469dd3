"""An error of the script ends the task, is no failed request, and makes the run red."""
from _users import Users
from locust import task


class Clumsy(Users):
    @task
    def stumble(self):
        self.client.get("/shop/", name="home")
        self.done += 1
        if self.done % 2 == 0:
            raise ValueError("no such page")
        self.client.get("/shop/items", name="items")
        self.done -= 1
        self.end_round()
