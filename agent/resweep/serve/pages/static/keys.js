// Judging by keyboard. Every key presses a button or moves the focus: nothing here does what a form does not.
(() => {
  "use strict";
  const OFF = "resweep.keys.off";
  const all = (query, root = document) => [...root.querySelectorAll(query)];
  const one = (query, root = document) => root.querySelector(query);
  const waiting = new Map(); // passage -> key whose press was not saved
  let retry = 0;
  let aim = null; // where the focus goes once a judgment is drawn

  const passages = () => all(".pass");
  const current = () => document.activeElement?.closest?.(".pass") ?? one(".pass[data-at]");

  function go(passage) {
    if (!passage) return;
    for (const other of all(".pass[data-at]")) {
      delete other.dataset.at;
      other.tabIndex = -1;
    }
    passage.dataset.at = "";
    passage.tabIndex = 0;
    passage.focus({ preventScroll: true });
    passage.scrollIntoView({ block: "nearest" });
  }

  function step(by) {
    const list = passages();
    const at = list.indexOf(current());
    go(list[at < 0 ? 0 : Math.max(0, Math.min(list.length - 1, at + by))]);
  }

  function judge(key) {
    const passage = current();
    const button = passage && one(`button[data-key="${key}"]`, passage);
    if (!button) return;
    const list = passages();
    aim = (list[list.indexOf(passage) + 1] ?? passage).id;
    if (button.getAttribute("aria-pressed") === "true") go(document.getElementById(aim));
    else button.click();
  }

  function press(key) {
    const target = one(`[data-key="${key}"]:not(.judge *)`);
    if (target) target.click();
  }

  function write(key) {
    const target = one(`[data-key="${key}"]`);
    if (!target) return;
    target.closest("details")?.setAttribute("open", "");
    target.focus();
  }

  function ask(dialog) {
    const found = document.getElementById(dialog);
    if (found && !found.open) found.showModal();
    return found;
  }

  const KEYS = {
    j: () => step(1), ArrowDown: () => step(1), k: () => step(-1), ArrowUp: () => step(-1),
    1: () => judge("1"), 0: () => judge("0"),
    n: () => press("n"), s: () => press("s"), u: () => press("u"), a: () => press("a"),
    e: () => write("e"), "/": () => write("/"), "?": () => ask("help"),
  };

  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, select, textarea, [contenteditable]");
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    if (typing || one("dialog[open]") || localStorage.getItem(OFF)) return;
    const act = KEYS[event.key];
    if (!act || (event.key.startsWith("Arrow") && !one(".pass"))) return;
    event.preventDefault();
    act();
  });

  document.addEventListener("focusin", (event) => {
    const passage = event.target.closest?.(".pass");
    if (!passage || "at" in passage.dataset) return;
    for (const other of all(".pass[data-at]")) delete other.dataset.at;
    passage.dataset.at = "";
  });

  // "Unanswerable" asks once.
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.('button[value="unanswerable"]');
    if (!button || button.dataset.sure) return;
    event.preventDefault();
    const dialog = ask("sure");
    dialog?.addEventListener("close", () => {
      if (dialog.returnValue !== "yes") return;
      button.dataset.sure = "1";
      button.click();
    }, { once: true });
  });

  // A judgment that could not be sent is kept, said, and sent again.
  const passageOf = (event) => event.target.closest?.(".pass");
  function say() {
    const state = document.getElementById("state");
    if (state && waiting.size) state.textContent = `Not saved, ${waiting.size} waiting. Trying again.`;
  }
  function again() {
    retry = 0;
    for (const [id, key] of [...waiting]) one(`#${CSS.escape(id)} button[data-key="${key}"]`)?.click();
  }
  function failed(event) {
    const passage = passageOf(event);
    if (!passage) return;
    waiting.set(passage.id, passage.dataset.sent ?? "1");
    say();
    if (aim) go(document.getElementById(aim));
    retry ||= setTimeout(again, 2000);
  }
  document.addEventListener("submit", (event) => {
    const passage = passageOf(event);
    if (passage && event.submitter) passage.dataset.sent = event.submitter.dataset.key;
  }, true);
  document.addEventListener("htmx:error", failed);
  document.addEventListener("htmx:response:error", failed);
  document.addEventListener("htmx:after:swap", (event) => {
    const id = passageOf(event)?.id ?? event.detail?.ctx?.target?.id;
    if (id) waiting.delete(id);
    const next = document.getElementById(aim ?? id ?? "");
    aim = null;
    go(next);
    say();
  });

  const off = document.getElementById("keys-off");
  function shown() {
    off.hidden = false;
    off.textContent = localStorage.getItem(OFF) ? "Turn keys on" : "Turn keys off";
  }
  if (off) {
    shown();
    off.addEventListener("click", () => {
      if (localStorage.getItem(OFF)) localStorage.removeItem(OFF);
      else localStorage.setItem(OFF, "1");
      shown();
    });
  }

  const named = location.hash.startsWith("#r") && document.getElementById(location.hash.slice(1));
  const open = passages().find((passage) => !passage.classList.contains("is-judged"));
  if (!one("[autofocus]") && passages().length) go(named || open || passages()[0]);
})();
