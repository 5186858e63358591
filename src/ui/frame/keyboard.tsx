import { signal } from '@preact/signals'
import { Dialog } from '../parts/dialog.tsx'
import { pages } from '../pages.ts'
import { linkTo, navigate } from './router.ts'

const isHelpOpen = signal(false)

/** The time between `g` and the key of a page. */
const PAIR_MS = 1500

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName))

/** The dialogs with fields that the reader has changed. */
const written = new WeakSet<Element>()

const dialogOf = (target: EventTarget | null): Element | null =>
  target instanceof Element ? target.closest('dialog') : null

const onInput = ({ target }: Event): void => {
  const dialog = dialogOf(target)
  if (dialog) written.add(dialog)
}

/** Whether Escape only leaves the field: a dialog in which nothing was written closes at once. */
const keepsText = (target: EventTarget | null): boolean => {
  const dialog = dialogOf(target)
  return !dialog || written.has(dialog)
}

/** The rows of the table of the page, in order. */
const rows = (): HTMLElement[] => [...document.querySelectorAll<HTMLElement>('main tbody tr[tabindex]')]

const moveRow = (step: 1 | -1): void => {
  const all = rows()
  const at = all.indexOf(document.activeElement as HTMLElement)
  const next = at === -1 ? (step === 1 ? 0 : all.length - 1) : at + step
  all[Math.max(0, Math.min(next, all.length - 1))]?.focus()
}

/** Opens the first link of the focused row. It presses no button: some act without a question. */
const openRow = (row: HTMLElement): void => row.querySelector<HTMLElement>('a[href]')?.click()

/** Listens to the shortcuts of all pages; returns what ends it. */
export const listenToKeys = (): (() => void) => {
  let isPair = false
  let timer: ReturnType<typeof setTimeout> | undefined
  const onKey = (event: KeyboardEvent): void => {
    const { key, target } = event
    if (event.ctrlKey || event.metaKey || event.altKey) return
    if (key === 'Escape' && document.querySelector('dialog[data-stays]')) {
      event.preventDefault() // the browser would close the dialogs below it too
      return
    }
    if (isTyping(target)) {
      if (key !== 'Escape' || !keepsText(target)) return
      event.preventDefault() // a search field would lose its text, and a dialog what was written in it
      ;(target as HTMLElement).blur()
      return
    }
    if (document.querySelector('dialog[open]')) return
    const page = isPair ? pages.find((one) => one.key === key) : undefined
    clearTimeout(timer)
    isPair = false
    if (page) {
      event.preventDefault()
      navigate(linkTo(page.path))
      return
    }
    const row = target instanceof HTMLElement && target.matches('main tbody tr[tabindex]') ? target : null
    if (key === 'g') {
      isPair = true
      timer = setTimeout(() => (isPair = false), PAIR_MS)
    } else if (key === '?') isHelpOpen.value = true
    else if (key === '/') {
      const search = document.querySelector<HTMLElement>('main input:not([type=checkbox]), main select')
      if (!search) return
      event.preventDefault()
      search.focus()
    } else if (key === 'j' || key === 'k') moveRow(key === 'j' ? 1 : -1)
    else if (row && key === 'Enter') openRow(row)
    else if (row && (key === 'x' || key === ' ')) {
      event.preventDefault()
      row.querySelector<HTMLInputElement>('input[type=checkbox]')?.click()
    }
  }
  document.addEventListener('keydown', onKey)
  document.addEventListener('input', onInput)
  return () => {
    document.removeEventListener('keydown', onKey)
    document.removeEventListener('input', onInput)
  }
}

/** The list of the shortcuts, opened with `?`. */
export const Shortcuts = () => (
  <Dialog title="Keyboard" isOpen={isHelpOpen.value} onClose={() => (isHelpOpen.value = false)}>
    <dl class="keys">
      {pages
        .filter(({ key }) => key !== undefined)
        .map(({ name, key }) => (
          <Keys key={name} keys={['g', key ?? '']} does={name} />
        ))}
      <Keys keys={['j', 'k']} does="Next and previous row" />
      <Keys keys={['Enter']} does="Open the row" />
      <Keys keys={['x']} does="Select the row" />
      <Keys keys={['/']} does="Filter" />
      <Keys keys={['Esc']} does="Leave a field, close a dialog" />
      <Keys keys={['?']} does="This list" />
    </dl>
  </Dialog>
)

const Keys = ({ keys, does }: { readonly keys: readonly string[]; readonly does: string }) => (
  <div>
    <dt>
      {keys.map((key) => (
        <kbd key={key}>{key}</kbd>
      ))}
    </dt>
    <dd>{does}</dd>
  </div>
)
