// Judging by keyboard. Every key presses a button or moves the focus: nothing here does what a form does not.
(() => {
  "use strict";
  const OFF = "resweep.keys.off";
  const all = (query, root = document) => [...root.querySelectorAll(query)];
  const one = (query, root = document) => root.querySelector(query);
  let retry = 0;

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
    const next = list[list.indexOf(passage) + 1] ?? passage;
    if (button.getAttribute("aria-pressed") !== "true") button.click();
    go(next); // at once: the next key is meant for it, however slow the answer is
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
    1: () => judge("1"), 0: () => judge("0"), 2: () => judge("2"), y: () => judge("y"),
    n: () => press("n"), s: () => press("s"), u: () => press("u"), a: () => press("a"),
    e: () => write("e"), f: () => write("f"), "/": () => write("/"), "?": () => ask("help"),
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
  let asked = null;
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.('button[value="unanswerable"]');
    if (!button || button.dataset.sure) return;
    event.preventDefault();
    asked = button;
    const dialog = ask("sure");
    if (dialog) dialog.returnValue = "";
  });
  document.getElementById("sure")?.addEventListener("close", (event) => {
    if (event.target.open || event.target.returnValue !== "yes" || !asked) return;
    asked.dataset.sure = "1";
    asked.click();
  });

  // A judgment that could not be sent is kept in this browser, said, and sent again: from here, or from the
  // next page of the review that is opened.
  const passageOf = (event) => event.target.closest?.(".pass");
  const here = one(".case")?.dataset.case;
  const BOX = `resweep.outbox.${one("[data-who]")?.dataset.who ?? ""}`;
  const nameOf = (id) => `${here} ${id}`;
  let box = {};
  try {
    box = JSON.parse(localStorage.getItem(BOX)) ?? {};
  } catch {
    localStorage.removeItem(BOX);
  }
  const waiting = () => Object.keys(box).length;

  function keep() {
    if (waiting()) localStorage.setItem(BOX, JSON.stringify(box));
    else localStorage.removeItem(BOX);
  }
  function say(text) {
    const state = document.getElementById("state");
    const told = text ?? (waiting() ? `Not saved, ${waiting()} waiting. Trying again.` : "");
    if (state && told) state.textContent = told;
  }
  const lasting = (status) => status >= 400 && status < 500 && ![401, 408, 429].includes(status);

  function again() {
    retry = 0;
    for (const [name, held] of Object.entries(box)) {
      const passage = held.case === here && document.getElementById(held.id);
      if (passage) one(`button[data-key="${held.key}"]`, passage)?.click();
      else send(name, held);
    }
  }
  async function send(name, held) {
    const csrf = one('input[name="csrf"]')?.value ?? "";
    const body = new URLSearchParams({ csrf, keep: "", rank: held.rank, passage: held.passage, grade: held.grade });
    try {
      const answer = await fetch(`/case/${held.case}/judge`, {
        method: "POST", body, headers: { "hx-request": "true" },
      });
      if (!answer.ok && !lasting(answer.status)) throw new Error(String(answer.status));
      if (box[name] === held) delete box[name];
      keep();
      if (answer.ok) say();
      else say(`A judgment of case ${held.case} was not saved: its list has changed.`);
    } catch {
      later();
    }
  }
  function later() {
    say();
    retry ||= setTimeout(again, 2000);
  }
  function failed(event) {
    const passage = passageOf(event);
    if (!passage) return;
    if (lasting(event.detail?.ctx?.response?.status)) {
      delete box[nameOf(passage.id)];
      keep();
      say("Not saved. Reload the page: the list may have changed.");
      return;
    }
    const field = (name) => one(`input[name="${name}"]`, passage)?.value ?? "";
    box[nameOf(passage.id)] = {
      case: here, id: passage.id, key: passage.dataset.sent ?? "1", grade: passage.dataset.grade ?? "1",
      rank: field("rank"), passage: field("passage"),
    };
    keep();
    later();
  }
  document.addEventListener("submit", (event) => {
    const passage = passageOf(event);
    if (passage && event.submitter) {
      passage.dataset.sent = event.submitter.dataset.key;
      passage.dataset.grade = event.submitter.value;
    } else if (event.target.id === "done" && waiting()) {
      event.preventDefault(); // what was judged goes first
      say();
    }
  }, true);
  document.addEventListener("htmx:error", failed);
  document.addEventListener("htmx:response:error", failed);
  document.addEventListener("htmx:after:swap", (event) => {
    const id = passageOf(event)?.id ?? event.detail?.ctx?.target?.id;
    if (id) delete box[nameOf(id)];
    keep();
    if (!document.activeElement?.closest(".pass, .done, dialog")) go(document.getElementById(id ?? ""));
    say();
  });
  window.addEventListener("online", again);
  if (waiting()) later();

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
