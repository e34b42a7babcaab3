// Links within the page land where they point. What lies far away is laid out only when it comes near, so a first jump
// goes by estimated heights; it is mended, frame by frame, until the place stays.
const mostFrames = 90,
  stillFrames = 8;
let run = 0;

function target(): HTMLElement | null {
  try {
    return document.getElementById(decodeURIComponent(location.hash.slice(1)));
  } catch {
    return null; // an address that no page of ours has
  }
}

// reveal: brings a place to light that is filtered away.
export function startLanding(reveal: (place: HTMLElement) => void): void {
  const land = (): void => {
    const place = target();
    if (!place) return;
    const mine = ++run;
    let frames = 0,
      still = 0;
    reveal(place);
    const step = (): void => {
      if (mine !== run || ++frames > mostFrames) return;
      const margin = parseFloat(getComputedStyle(place).scrollMarginTop) || 0,
        off = place.getBoundingClientRect().top - margin,
        end = document.documentElement.scrollHeight - innerHeight - scrollY;
      // At the end of the page there is nothing further down to go to.
      const there = Math.abs(off) < 1 || (off > 0 && end < 1);
      still = there ? still + 1 : 0;
      if (!there) place.scrollIntoView({ block: 'start', behavior: 'instant' });
      if (still < stillFrames) requestAnimationFrame(step);
    };
    step();
  };
  // Whoever moves the page has seen enough of it.
  for (const event of ['wheel', 'touchstart', 'pointerdown', 'keydown'])
    addEventListener(event, () => ++run, { passive: true });
  addEventListener('hashchange', land);
  // The same place again does not change the address.
  addEventListener('click', event => {
    const link = (event.target as Element).closest<HTMLAnchorElement>('a[href^="#"]');
    if (link && link.hash === location.hash) land();
  });
  land();
}
