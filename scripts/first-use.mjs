/* global performance, PerformanceObserver */

/**
 * What a first user does, with the time that it takes; milliseconds. Shared by the scripts that
 * measure it and that film it.
 */

/**
 * Opens an address that signs in.
 * @returns the times from the navigation to the first content, and to the form with the user signed in.
 */
export async function openAndTime(page, address) {
  await page.goto(address);
  await page.locator('.prompt-form').waitFor({ timeout: 60_000 });
  const formMs = await page.evaluate(() => performance.now());
  const firstContentMs = await page.evaluate(
    () =>
      new Promise((resolve) => {
        // The browser tells of what it has painted a moment after it has.
        new PerformanceObserver((list) => {
          const [found] = list.getEntriesByName('first-contentful-paint');
          if (found) resolve(found.startTime);
        }).observe({ type: 'paint', buffered: true });
      }),
  );
  console.log(
    `first content ${Math.round(firstContentMs)} ms, form with the user signed in ${Math.round(formMs)} ms after the navigation`,
  );
  return { firstContentMs, formMs };
}

/** Presses Draw by `press`. @returns the times from then to the first preview and to the picture. */
export async function drawAndTime(page, press) {
  await press(page.locator('.prompt-form .is-primary'));
  const sentAt = performance.now();
  const until = async (selector) => {
    await page.locator(selector).waitFor({ timeout: 120_000 });
    return performance.now() - sentAt;
  };
  const firstPreviewMs = await until('.stage [data-testid=preview]');
  const pictureMs = await until('.stage button img');
  const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;
  console.log(
    `first preview ${seconds(firstPreviewMs)}, picture ${seconds(pictureMs)} after Draw, with the model's own steps`,
  );
  return { firstPreviewMs, pictureMs };
}
