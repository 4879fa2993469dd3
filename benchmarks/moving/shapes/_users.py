"""Three users who each go through their task so often; the run ends with the last of them."""
import os

from locust import HttpUser, constant
from locust.exception import StopUser


class Users(HttpUser):
    abstract = True
    host = os.environ["BASE"]
    wait_time = constant(0.001)
    rounds = 5
    left = 3
    done = 0

    def on_stop(self):
        Users.left -= 1
        if Users.left == 0:
            self.environment.runner.quit()

    def end_round(self):
        self.done += 1
        if self.done == self.rounds:
            raise StopUser()
