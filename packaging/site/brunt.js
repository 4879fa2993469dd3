// The button that opens the contents is a label; say what it is, and let the keyboard use it.
const toggle = document.getElementById("mdbook-sidebar-toggle");
toggle.setAttribute("role", "button");
toggle.tabIndex = 0;
toggle.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" && event.key !== " ") return;
  event.preventDefault();
  toggle.click();
});
// What scrolls sideways can be scrolled by the keyboard.
for (const wide of document.querySelectorAll("main pre > code, main .table-wrapper, main pre")) {
  if (wide.scrollWidth > wide.clientWidth) wide.tabIndex = 0;
}
