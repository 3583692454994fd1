"""The review queue and judging, by keys and by clicks, in a real browser."""

from __future__ import annotations

from typing import Any

import pytest

from resweep.domain.case import Filter, Suggestion
from resweep.store.reviews import Move

pytestmark = pytest.mark.integration
LOOKS: dict[str, Any] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "390": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}},
}


def grades(site: Any, case_id: str, who: str) -> dict[str, float]:
    """Return what a person said of the passages of a case."""
    return {
        one.passage_id: one.grade for one in site.store.case(case_id, who).judgments if one.reviewer == who
    }


def case_of(page: Any) -> str:
    """Return the id of the case on a page."""
    return str(page.locator(".case").get_attribute("data-case"))


def ready(page: Any) -> None:
    """Wait until the keys are heard."""
    page.locator(".pass[data-at]").wait_for()


def saved(page: Any, n: int) -> None:
    """Wait until so many passages are judged."""
    page.get_by_text(f"{n} of 39 judged").wait_for()


@pytest.mark.parametrize("look", LOOKS)
def test_the_queue_and_a_case_look_finished(look: str, person: Any) -> None:
    """At every width nothing scrolls sideways."""
    someone = person("s.lindqvist", "reviewer", **LOOKS[look])
    page = someone.sign_in("/review?pipeline=support-bot")
    someone.shot(f"review-{look}")
    assert page.get_by_text("400 cases").first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("link", name="How long do refunds take").click()
    page.get_by_role("button", name="Answers it").first.click()
    saved(page, 1)
    someone.shot(f"case-{look}", whole=False)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="Undo").click()


def test_a_case_is_judged_by_keys_alone(person: Any, site: Any) -> None:
    """Next case, 1, 0, j, undo, done with what was passed over, and on to the next."""
    someone = person("by-keys", "reviewer")
    page = someone.sign_in("/review?pipeline=support-bot")
    page.keyboard.press("n")
    page.wait_for_url("**/case/**")
    case_id = case_of(page)
    for n, key in enumerate("10", 1):
        page.keyboard.press(key)
        saved(page, n)
    page.keyboard.press("j")
    page.keyboard.press("1")
    saved(page, 3)
    assert grades(site, case_id, "by-keys") == {
        "p-10001": 1.0,
        "p-10017": 1.0,
        "p-10002": 0.0,
        "p-10004": 1.0,
    }
    page.keyboard.press("u")
    page.wait_for_url("**#r4")
    assert "p-10004" not in grades(site, case_id, "by-keys")
    page.keyboard.press("1")
    saved(page, 3)
    page.keyboard.press("n")
    page.get_by_text("1 passage above was not judged").wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "/case/" in url and case_id not in url)
    assert site.store.case(case_id).case.state == "labelled"
    assert grades(site, case_id, "by-keys")["p-10003"] == 0.0
    page.keyboard.press("u")
    page.wait_for_url(f"**/case/{case_id}**")
    someone.expected("409 (Conflict)")


def test_equal_passages_are_one_and_the_words_of_the_question_are_marked(person: Any) -> None:
    """Rank 17 has the text of rank 1; the prompt's end is shown."""
    page = person("a-reader", "reviewer").sign_in("/review")
    page.get_by_role("link", name="How long do refunds take").click()
    ready(page)
    assert page.locator("#r17").count() == 0
    assert page.locator("#r1").get_by_text("Also at rank 17").is_visible()
    assert page.locator("#r1 mark").count() >= 1
    assert page.get_by_text("The prompt ends here: context_k = 8").is_visible()


def test_unanswerable_asks_once(person: Any, site: Any) -> None:
    """Going back changes nothing."""
    page = person("careful", "reviewer").sign_in("/review?q=API+rate")
    page.get_by_role("link", name="API rate limit").click()
    ready(page)
    case_id = case_of(page)
    page.keyboard.press("a")
    page.get_by_role("button", name="Go back").click()
    assert site.store.case(case_id, "careful").reviews == ()
    page.keyboard.press("a")
    page.get_by_role("dialog").get_by_role("button", name="Unanswerable").click()
    page.wait_for_url("**/review?**")
    assert site.store.case(case_id).case.state == "unanswerable"


def test_two_people_on_one_case_lose_nothing(person: Any, site: Any) -> None:
    """Each keeps their own words, is blind to the other's until done, and a difference is shown."""
    one, two = person("anna", "reviewer"), person("bert", "admin")
    first = one.sign_in("/review?q=invoice")
    second = two.sign_in("/review?q=invoice")
    for page in (first, second):
        page.get_by_role("link", name="Why does the invoice").click()
        ready(page)
    second.get_by_text("anna has this open").wait_for()
    first.keyboard.press("1")
    second.keyboard.press("0")
    saved(first, 1)
    saved(second, 1)
    case_id = case_of(first)
    assert second.get_by_text("anna: answers it").count() == 0
    first.keyboard.press("n")
    first.wait_for_url("**/review?**")
    second.keyboard.press("n")
    second.wait_for_url("**/review?**")
    assert grades(site, case_id, "anna")["p-10001"] == 1.0
    assert grades(site, case_id, "bert")["p-10001"] == 0.0
    second.goto(f"/case/{case_id}")
    second.get_by_text("Two reviewers differ").wait_for()
    second.get_by_role("button", name="bert is right").click()
    second.get_by_text("Two reviewers differ").wait_for(state="detached")
    assert site.store.case(case_id).case.lead == "bert"


def test_without_a_script_a_judgment_is_a_form(person: Any, site: Any) -> None:
    """The answer returns to the passage."""
    page = person("no-script", "reviewer", java_script_enabled=False).sign_in("/review?q=seats")
    page.get_by_role("link", name="Can I move my seats").click()
    page.locator("#r2").get_by_role("button", name="Does not").click()
    page.wait_for_url("**#r2")
    case_id = case_of(page)
    assert grades(site, case_id, "no-script") == {"p-10002": 0.0}
    assert page.locator("#r2").get_by_role("button", name="Does not").get_attribute("aria-pressed") == "true"


def test_a_judgment_made_offline_is_kept_and_sent_again(person: Any, site: Any) -> None:
    """The bar says so meanwhile."""
    someone = person("offline", "reviewer")
    page = someone.sign_in("/review?q=single")
    page.get_by_role("link", name="Is single sign-on").click()
    ready(page)
    case_id = case_of(page)
    someone.context.set_offline(True)
    page.keyboard.press("1")
    page.get_by_text("Not saved, 1 waiting").wait_for()
    someone.context.set_offline(False)
    saved(page, 1)
    assert grades(site, case_id, "offline")["p-10001"] == 1.0
    someone.expected("ERR_INTERNET_DISCONNECTED", "Failed to fetch")


def test_keys_can_be_turned_off_and_help_lists_them(person: Any, site: Any) -> None:
    """WCAG 2.1.4."""
    page = person("mouse", "reviewer").sign_in("/review?q=happens")
    page.get_by_role("link", name="What happens to my data").click()
    ready(page)
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keys").wait_for()
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Turn keys off").click()
    page.keyboard.press("1")
    page.get_by_role("button", name="Turn keys on").wait_for()
    assert grades(site, case_of(page), "mouse") == {}


def test_a_suggestion_counts_once_y_confirms_it(person: Any, site: Any) -> None:
    """It stands below the text, is never preselected, and is no judgment by itself."""
    (case_id,) = (r.case_id for r in site.store.case_page(Filter(words="VAT")))
    for n, grade in ((1, 1.0), (2, 0.0)):
        told = Suggestion(
            passage_id=f"p-1000{n}",
            grade=grade,
            judge="small-model",
            ts=1.0,
            reason="It names the form.",
            text_hash=f"hash-{n}",
        )
        site.store.suggest(case_id, [told])
    page = person("trusting", "reviewer").sign_in(f"/case/{case_id}")
    ready(page)
    assert "Suggestion of small-model: answers it (It names the form.)" in page.locator("#r1").inner_text()
    assert page.locator("[aria-pressed=true]").count() == 0
    assert grades(site, case_id, "trusting") == {}
    for n in (1, 2):
        page.keyboard.press("y")
        saved(page, n)
    given = {"p-10001": 1.0, "p-10017": 1.0, "p-10002": 0.0}
    assert grades(site, case_id, "trusting") == given
    assert page.locator("#r1").get_by_text("Confirm").count() == 0
    assert page.locator("#r3").get_by_text("Confirm").count() == 0
    page.reload()
    page.get_by_text("Suggestions: people agree with").wait_for()


def test_required_facts_are_written_as_ranks(person: Any, site: Any) -> None:
    """A rank that is none is told with what was written; what was right comes back as it went."""
    (case_id,) = (r.case_id for r in site.store.case_page(Filter(words="rate")))
    someone = person("facts", "reviewer")
    page = someone.sign_in(f"/case/{case_id}")
    ready(page)
    page.keyboard.press("1")
    saved(page, 1)
    page.keyboard.press("f")
    page.keyboard.type("1, 4\n99")
    page.get_by_role("button", name="Done, next case").click()
    page.get_by_text("line 2: expected ranks from 1 to 40; got '99'").wait_for()
    facts = page.get_by_label("Required facts")
    assert facts.input_value() == "1, 4\n99"
    facts.fill("1, 4\n3")
    page.get_by_role("button", name="Done, next case").click()
    page.wait_for_url(lambda url: case_id not in url)
    (word,) = (r for r in site.store.case(case_id).reviews if r.reviewer == "facts")
    assert word.required == (("p-10001", "p-10017", "p-10004"), ("p-10003",))
    page.goto(f"/case/{case_id}")
    assert page.get_by_label("Required facts").input_value() == "1, 4\n3"
    someone.expected("400 (Bad Request)")
    page.get_by_role("button", name="Undo").click()


def test_what_was_judged_offline_outlives_the_page(person: Any, site: Any) -> None:
    """It is kept in the browser and sent from the next page of the review; "Done" waits for it."""
    someone = person("train", "reviewer")
    page = someone.sign_in("/review?q=workspace")
    page.get_by_role("link", name="Can I move").click()
    ready(page)
    case_id = case_of(page)
    page.route("**/judge", lambda route: route.abort("internetdisconnected"))
    page.keyboard.press("1")
    page.keyboard.press("0")
    page.get_by_text("Not saved, 2 waiting").wait_for()
    page.keyboard.press("n")
    assert case_of(page) == case_id
    assert grades(site, case_id, "train") == {}
    page.unroute("**/judge")
    page.goto("/review?q=invoice")
    for _ in range(100):
        if page.evaluate("localStorage.getItem('resweep.outbox.train')") is None:
            break
        page.wait_for_timeout(100)
    assert grades(site, case_id, "train") == {"p-10001": 1.0, "p-10017": 1.0, "p-10002": 0.0}
    someone.expected("ERR_INTERNET_DISCONNECTED", "Failed to fetch")


def test_a_second_grade_is_given_where_it_is_on(person: Any, graded: Any) -> None:
    """`2` fully answers, `1` in part; elsewhere the key does nothing and the form is refused."""
    case_id = graded.store.case_page()[0].case_id
    someone = person("fine", "reviewer", graded)
    page = someone.sign_in(f"/case/{case_id}")
    ready(page)
    for n, key in enumerate("210", 1):
        page.keyboard.press(key)
        saved(page, n)
    given = {"p-10001": 2.0, "p-10017": 2.0, "p-10002": 1.0, "p-10003": 0.0}
    assert grades(graded, case_id, "fine") == given
    someone.shot("case-grades", whole=False)


def test_a_judgment_that_lost_its_text_is_shown_and_let_go(person: Any, site: Any) -> None:
    """After a new chunking; it stays on record until somebody says so."""
    (case_id,) = (r.case_id for r in site.store.case_page(Filter(words="happens")))
    site.store.judge(case_id, "mender", "p-old", 1.0, "gone")
    site.store.reanchor(
        case_id,
        [Move("mender", "p-old", "lost", None)],
        site.store.case(case_id).hits,
        "d" * 12,
        8,
        1.0,
    )
    page = person("mender", "reviewer").sign_in(f"/case/{case_id}")
    page.get_by_text("1 judgment lost its text").wait_for()
    page.get_by_role("button", name="Let it go").click()
    page.wait_for_load_state()
    assert page.get_by_text("lost its text").count() == 0
    assert grades(site, case_id, "mender") == {}
