"""Opens the report in a headless Chromium, uses it as a reader does, and checks the result.

    browser.py BROWSER DRIVER PAGE PICTURE_FOLDER

The kernels lie beside the page.
"""
import pathlib
import sys
import time

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

WIDE, NARROW = 1400, 390


def open_browser(browser, driver):
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service(driver), options=options)


class Page:
    def __init__(self, driver):
        self.driver = driver

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def column(self, title):
        """Returns the texts of a column, from the top."""
        titles = [head.text.strip(" ↕↑↓") for head in self.all("#columns button")]
        return self.driver.execute_script(
            "return [...document.querySelectorAll('#rows tr')].map(r => r.children[arguments[0]].textContent)",
            titles.index(title))

    def sort(self, title):
        next(b for b in self.all("#columns button") if b.text.startswith(title)).click()

    def bars(self, chart):
        return self.driver.execute_script("return charts[arguments[0]].data.labels", chart)

    def show(self, scheme, width):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                    {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False})
        time.sleep(0.4) # charts adapt to a new size in the next frames


def soon(what, expected):
    """The driver reports a choice before the page receives it."""
    end = time.monotonic() + 5
    while what() != expected and time.monotonic() < end:
        time.sleep(0.05)
    assert what() == expected, (what(), expected)


def numbers(texts):
    return [float(text.split()[0]) for text in texts if text != "–"]


def all_is_shown(page):
    assert page.driver.title == "tiny kernels"
    assert page.one("#summary").text == "6 kernels of 4 families, written by ptxgen 0.1.0", page.one("#summary").text
    assert page.one("#count").text == f"{len(page.all('#rows tr'))} of {len(page.all('#rows tr'))} rows"
    assert set(page.column("target")) == {"sm_75", "sm_90"}
    assert {r for t, r in zip(page.column("target"), page.column("registers")) if t == "sm_75"} == {"40"}
    assert {r for t, r in zip(page.column("target"), page.column("registers")) if t == "sm_90"} == {"80"}
    assert all(0 <= error < 1 for error in numbers(page.column("verify error")))
    assert "–" in page.column("instructions"), "q8_1_quantize marks no loop"


def nothing_is_cut_or_left_unsaid(page):
    labels = page.driver.execute_script(
        "return Object.values(charts).map((c) => c.scales.y.ticks.map((t) => [].concat(t.label).join(' ')))")
    for chart in labels:
        assert len(set(chart)) == len(chart) and not any("…" in label for label in chart), chart
    assert "mwv_q4k_gemv k256 n8 w4 sm_90" in labels[0], labels[0]
    cells = page.driver.execute_script("return [...document.querySelectorAll('#rows td')].map((c) => c.textContent)")
    assert all(cells), "a cell is empty"
    dashes = page.all("#rows td span[title]")
    assert dashes and all(dash.text == "–" and dash.get_attribute("title") for dash in dashes)
    assert "– instructions: the PTX marks no hot loop." in page.one("#gaps").text, page.one("#gaps").text
    lines = page.driver.execute_script(
        "return [...document.querySelectorAll('#rows th button')].map((b) => b.getClientRects().length)")
    assert set(lines) == {1}, "a family wraps beside columns that have room"


def columns_without_a_value_are_named(page, path):
    page.driver.get(path.as_uri())
    titles = [head.text.strip(" ↕↑↓") for head in page.all("#columns button")]
    assert titles == ["family", "configuration", "target", "shared", "instructions", "bytes per load"], titles
    gaps = page.one("#gaps").text
    for said in ("Not shown: registers: ptxas was not run", "Not shown: verify error: the kernel was not run"):
        assert said in gaps, gaps
    assert "–" not in page.column("shared")


def a_click_sorts_and_another_turns_it_round(page):
    for title in ("occupancy", "shared", "bytes per load"):
        page.sort(title)
        rising = numbers(page.column(title))
        assert rising == sorted(rising) and len(set(rising)) > 1, (title, rising)
        assert page.one("#columns [aria-sort]").get_attribute("aria-sort") == "ascending"
        page.sort(title)
        assert numbers(page.column(title)) == sorted(rising, reverse=True), title
    page.sort("instructions")
    page.sort("instructions")
    assert page.column("instructions")[-1] == "–", "what is not known comes last"
    page.sort("configuration")
    sizes = [text for text in page.column("configuration") if text.startswith("k=") and "num_warps" not in text]
    assert sizes.index("k=256 n=8") < sizes.index("k=512 n=4"), sizes


def filters_leave_what_they_say(page):
    total = len(page.all("#rows tr"))
    page.one("#search").send_keys("Q4K w4 sm_90")
    assert page.column("family") == ["mwv_q4k_gemv"], page.column("family")
    assert page.one("#count").text == f"1 of {total} rows"
    assert page.bars("occupancy") == ["mwv_q4k_gemv_k256_n8_w4 sm_90"], page.bars("occupancy")
    assert page.bars("mix") == ["mwv_q4k_gemv_k256_n8_w4"]
    page.one("#search").send_keys(Keys.CONTROL, "a", Keys.DELETE)
    page.one("#family").send_keys("f32")
    page.one("#target").send_keys("sm_75")
    soon(lambda: list(zip(page.column("family"), page.column("target"))), [("f32_gemv", "sm_75")] * 2)
    page.one("#search").send_keys("nothing like it")
    soon(lambda: page.column("family") + page.bars("mix"), [])
    for select in ("#family", "#target"):
        page.one(select).send_keys("all")
    page.one("#search").send_keys(Keys.CONTROL, "a", Keys.DELETE)
    soon(lambda: len(page.all("#rows tr")), total)


def a_click_opens_the_ptx_in_colours(page, written):
    page.one("#rows tr[data-kernel=mwv_q4k_gemv_k256_n8_w2] td").click()
    assert page.one("#kernel").is_displayed()
    text = page.driver.execute_script("return document.getElementById('ptx').textContent")
    assert text == written.read_text(), "what the page shows is the file"
    colours = {}
    for kind, sample in (("mnemonic", "ld.param.u64"), ("register", "%rd1"), ("type", ".entry"),
                         ("comment", "// lane"), ("label", "$"), ("value", "64")):
        spans = [s for s in page.all(f"#ptx .{kind}") if s.text.startswith(sample)]
        assert spans, (kind, sample)
        colours[kind] = spans[0].value_of_css_property("color")
    assert len(set(colours.values())) == len(colours), colours
    page.one("#close").click()
    assert not page.one("#kernel").is_displayed()
    page.one("#rows tr[data-kernel=f32_gemv_k256_n8] th button").send_keys(Keys.ENTER)
    assert page.one("#kernel-name").text == "f32_gemv_k256_n8"
    page.one("#kernel").send_keys(Keys.ESCAPE)
    assert not page.one("#kernel").is_displayed()


def contrast(page, selector):
    """Returns WCAG's contrast ratio between an element's text and the first opaque background behind it."""
    def luminance(colour):
        parts = [int(float(c)) / 255 for c in colour[colour.index("(") + 1:-1].split(",")[:3]]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    colours = page.driver.execute_script("""
        let at = arguments[0];
        const text = getComputedStyle(at).color;
        while (at.parentElement && getComputedStyle(at).backgroundColor === 'rgba(0, 0, 0, 0)') at = at.parentElement;
        return [text, getComputedStyle(at).backgroundColor];""", page.one(selector))
    lights = sorted(map(luminance, colours))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def it_reads_in_every_shape(page, pictures):
    for scheme in ("light", "dark"):
        for name, width in (("wide", WIDE), ("narrow", NARROW)):
            page.show(scheme, width)
            overflow = page.driver.execute_script("return document.documentElement.scrollWidth - innerWidth")
            assert overflow <= 0, f"{scheme} {name}: the page is {overflow} px too wide"
            for selector in ("#summary", "#rows th button", "#rows .unit", "#columns button", "figcaption span"):
                assert contrast(page, selector) >= 4.5, (scheme, selector, contrast(page, selector))
            page.driver.save_screenshot(str(pictures / f"{scheme}-{name}.png"))
            page.driver.execute_script("document.getElementById('scroll').scrollIntoView()")
            page.driver.save_screenshot(str(pictures / f"{scheme}-{name}-table.png"))
            page.one("#rows tr[data-kernel=mwv_q4k_gemv_k256_n8_w2] th button").click()
            for kind in ("comment", "type", "register", "value", "mnemonic", "label"):
                assert contrast(page, f"#ptx .{kind}") >= 4.5, (scheme, kind, contrast(page, f"#ptx .{kind}"))
            page.driver.save_screenshot(str(pictures / f"{scheme}-{name}-kernel.png"))
            page.one("#close").click()
            page.driver.execute_script("scrollTo(0, 0)")


def it_asks_for_nothing_outside(page):
    loaded = page.driver.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert loaded == [], loaded


def main():
    browser, driver_program, page_path, pictures = sys.argv[1:]
    path = pathlib.Path(page_path).resolve()
    driver = open_browser(browser, driver_program)
    try:
        driver.set_window_size(WIDE, 1000)
        driver.get(path.as_uri())
        page = Page(driver)
        page.show("light", WIDE)
        all_is_shown(page)
        nothing_is_cut_or_left_unsaid(page)
        a_click_sorts_and_another_turns_it_round(page)
        filters_leave_what_they_say(page)
        a_click_opens_the_ptx_in_colours(page, path.with_name("tiny.mwv_q4k_gemv_k256_n8_w2.sm_75.ptx"))
        it_asks_for_nothing_outside(page)
        it_reads_in_every_shape(page, pathlib.Path(pictures))
        columns_without_a_value_are_named(page, path.with_name("unchecked.html"))
        messages = driver.get_log("browser")
        assert messages == [], messages
    finally:
        driver.quit()


main()
