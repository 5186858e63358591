import { computed, signal } from '@preact/signals'

/** The dashboard is served below this path. */
export const BASE = '/ui'

const here = signal(new URL(location.href))

/** The path of the page below `/ui`, without a slash at its end; the start page is `/`. */
export const path = computed(() => here.value.pathname.slice(BASE.length).replace(/\/+$/, '') || '/')

/** The query string: it has the state of a page, so that a link or a reload shows the same. */
export const query = computed(() => here.value.searchParams)

/** One parameter of the query; empty if it is missing. */
export const param = (name: string): string => query.value.get(name) ?? ''

interface Navigation {
  /** Replaces the entry in the history of the browser. */
  readonly replace?: boolean
  /** The entry continues the one before it, such as the next page of a list: `continues` is true on it. */
  readonly isNext?: boolean
}

const NEXT = 'next'

/** Whether the entry before this one is the page of the list before. */
export const continues = (): boolean => history.state === NEXT

/** Shows another page; `to` begins with `/ui`. */
export const navigate = (to: string, { replace = false, isNext = false }: Navigation = {}): void => {
  const from = here.value.pathname
  history[replace ? 'replaceState' : 'pushState'](isNext ? NEXT : null, '', to)
  here.value = new URL(location.href)
  if (here.value.pathname === from) return
  scrollTo(0, 0)
  document.querySelector<HTMLElement>('main')?.focus()
}

/** Changes parameters of the query; an empty value removes one. */
export const setQuery = (patch: Readonly<Record<string, string>>, navigation: Navigation = {}): void => {
  const next = new URLSearchParams(query.value)
  for (const [name, value] of Object.entries(patch)) {
    if (value === '') next.delete(name)
    else next.set(name, value)
  }
  const text = next.toString()
  navigate(here.value.pathname + (text && `?${text}`), navigation)
}

/** The address of a page with parameters, without the empty ones. */
export const linkTo = (page: string, parameters: Readonly<Record<string, string>> = {}): string => {
  const given = Object.entries(parameters).filter(([, value]) => value !== '')
  const text = new URLSearchParams(given).toString()
  return BASE + (page === '/' ? '' : page) + (text && `?${text}`)
}

/** Shows pages of the dashboard without a new document. Other links, and those for a new tab, are for the browser. */
export const followLinks = (): void => {
  addEventListener('popstate', () => (here.value = new URL(location.href)))
  document.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null
    const isOther = event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey
    if (!link || isOther || event.defaultPrevented || link.target || link.hasAttribute('download')) return
    const { origin, pathname, search, hash } = new URL(link.href)
    if (origin !== location.origin || !(pathname === BASE || pathname.startsWith(`${BASE}/`))) return
    if (hash !== '' && pathname === location.pathname && search === location.search) return // a part of this page
    event.preventDefault()
    navigate(pathname + search)
  })
}

/** The parameters of a path such as `/runs/:run_id`; null if it does not match. */
export const matched = (pattern: string, actual: string): Readonly<Record<string, string>> | null => {
  const [wanted, got] = [pattern.split('/'), actual.split('/')]
  if (wanted.length !== got.length) return null
  const params: Record<string, string> = {}
  for (const [index, part] of wanted.entries()) {
    const value = got[index] ?? ''
    if (part.startsWith(':')) params[part.slice(1)] = decoded(value)
    else if (part !== value) return null
  }
  return params
}

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text // a mistyped address is shown as it is
  }
}
