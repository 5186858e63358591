import { computed, effect, signal } from '@preact/signals'

export type Theme = 'system' | 'light' | 'dark'

const KEY = 'svc-theme'
const THEMES: readonly Theme[] = ['system', 'light', 'dark']

const stored = (): Theme => {
  try {
    return THEMES.find((theme) => theme === localStorage.getItem(KEY)) ?? 'system'
  } catch {
    return 'system' // the browser forbids storage
  }
}

export const theme = signal<Theme>(stored())

const dark = matchMedia('(prefers-color-scheme: dark)')
const isSystemDark = signal(dark.matches)
dark.addEventListener('change', ({ matches }) => (isSystemDark.value = matches))

/** The colors that the page shows: pictures are drawn again when they change. */
export const scheme = computed(() =>
  theme.value === 'system' ? (isSystemDark.value ? 'dark' : 'light') : theme.value,
)

/** Shows the colors of the theme from now on. */
export const applyTheme = (): void =>
  void effect(() => {
    document.documentElement.dataset['theme'] = scheme.value
  })

/** Switches to the next theme and keeps it in this browser. */
export const nextTheme = (): void => {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? 'system'
  try {
    localStorage.setItem(KEY, theme.value)
  } catch {
    // it is valid until the page is closed
  }
}
