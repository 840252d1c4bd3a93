// Lets files be dropped anywhere on the page, and refuses too large ones before they travel.
// It runs as the handler of an element that is drawn anew from time to time: once is enough.
if (!window.pointmendDrops) {
  window.pointmendDrops = true;
  const refused = () => document.getElementById("pointmend-refused");
  const fits = (file) => file.size <= LIMIT_BYTES;
  const complain = (file) => {
    refused().textContent = `${file.name}: ${Math.round(file.size / 1e6)} MB are more than the ` +
      `${LIMIT_BYTES / 1e6} MB that can be uploaded; open it by its path`;
  };
  const hand_over = (file) => {
    const input = document.querySelector("input[type=file]");
    const one = new DataTransfer();
    one.items.add(file);
    input.files = one.files;
    input.dispatchEvent(new Event("change", { bubbles: true }));
  };
  window.addEventListener("dragover", (event) => event.preventDefault());
  window.addEventListener("drop", (event) => {
    event.preventDefault();
    [...event.dataTransfer.files].forEach(hand_over);
  });
  // Before the page's own handler sees the choice, whether dropped or chosen with the button.
  window.addEventListener("change", (event) => {
    const files = event.target.type === "file" ? [...event.target.files] : [];
    if (files.length) refused().textContent = "";
    const large = files.find((file) => !fits(file));
    if (large) {
      complain(large);
      event.stopImmediatePropagation();
    }
  }, { capture: true });
}
