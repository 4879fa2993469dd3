"""JSON that is sent and read, and an answer that is no success for what stands in it."""
from _users import Users
from locust import task


class Speaker(Users):
    @task
    def speak(self):
        said = {"round": self.done, "words": ["é", "\"", "\\"], "nothing": None}
        with self.client.post("/_/echo", json=said, name="echo", catch_response=True) as answer:
            if answer.json() != said:
                answer.failure("another echo")
        with self.client.post("/_/echo", json={"ok": self.done % 5 != 0}, name="judged", catch_response=True) as answer:
            if not answer.json()["ok"]:
                answer.failure("not ok")
        self.end_round()
