"""Queries with more than one value and signs in them, forms, and a file in a form."""
from _users import Users
from locust import task


class Clerk(Users):
    @task
    def file(self):
        self.client.get("/shop/items", params={"page": 2}, name="page")
        with self.client.get("/_/headers", params={"q": "a b&c=ü"}, name="query", catch_response=True) as answer:
            if "a+b%26c%3D%C3%BC" not in answer.text.replace("%20", "+"):
                answer.failure("another query")
        with self.client.post("/_/echo", data={"name": "ann & co"}, name="form", catch_response=True) as answer:
            if answer.text.replace("%20", "+") != "name=ann+%26+co":
                answer.failure("another form")
        self.client.post("/shop/upload", files={"page": ("page.txt", b"hello", "text/plain")}, name="upload")
        self.end_round()
