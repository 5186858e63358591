/** Where the focus of the page was, and what can take it if its element disappears. */
interface Place {
  readonly element: Element
  /** The rows of its table, and the place of its row among them. */
  readonly rows: HTMLTableSectionElement | null
  readonly index: number
  /** What contains it, the nearest first. */
  readonly around: readonly HTMLElement[]
}

const placeOf = (element: Element, main: Element): Place => {
  const row = element.closest('tr')
  const around: HTMLElement[] = []
  for (let one = element.parentElement; one && main.contains(one); one = one.parentElement)
    if (one.matches('main, section, [tabindex]')) around.push(one)
  return {
    element,
    rows: row?.closest('tbody') ?? null,
    index: row?.sectionRowIndex ?? 0,
    around,
  }
}

let latest: HTMLElement | null = null

/** The element that had the focus last. */
export const focusedLast = (): HTMLElement | null => latest

const isGone = ({ element }: Place): boolean => !element.isConnected

/** The row that follows the one that is gone, or else the nearest part of the page that remains. */
const successorOf = ({ rows, index, around }: Place): HTMLElement | undefined =>
  rows?.isConnected && rows.rows.length > 0
    ? rows.rows[Math.min(index, rows.rows.length - 1)]
    : around.find((one) => one.isConnected)

const move = (to: HTMLElement): void => {
  if (!to.hasAttribute('tabindex')) to.tabIndex = -1
  to.focus({ preventScroll: true })
}

/**
 * Keeps the focus near its place when an action or an update removes the element that had it, such as the
 * button of a deleted row. The browser would begin at the top of the page again (WCAG 2.4.3).
 */
export const keepFocus = (): void => {
  let last: Place | null = null
  const isInDialog = (): boolean => document.querySelector('dialog[open]') !== null
  document.addEventListener('focusin', ({ target }) => {
    if (target instanceof HTMLElement) latest = target
    const main = document.querySelector('main')
    if (!(target instanceof Element) || isInDialog()) return // the place below the dialog remains
    last = main?.contains(target) ? placeOf(target, main) : null
  })
  document.addEventListener('focusout', () => {
    queueMicrotask(() => {
      // The reader left the element, unless it is gone or a dialog was opened.
      if (last && !isGone(last) && !last.element.matches(':focus') && !isInDialog()) last = null
    })
  })
  new MutationObserver(() => {
    const isLost = document.activeElement === document.body
    if (!last || !isLost || !isGone(last) || isInDialog()) return
    const next = successorOf(last)
    last = null
    if (next) move(next)
  }).observe(document.body, { childList: true, subtree: true })
}
