import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { isoOf } from '../../clock.ts'
import { param, setQuery } from '../frame/router.ts'

/**
 * A time of a field, which is in the time zone of the reader, as ISO 8601. Another text, which only a wrong address has, stays
 * as it is: the service refuses it.
 */
export const isoOfField = (value: string): string => {
  const ms = Date.parse(value)
  return Number.isNaN(ms) ? value : isoOf(ms)
}

/** The pause after the last key before the list is loaded again. */
const PAUSE_MS = 300

interface TextProps {
  readonly label: string
  /** The parameter of the URL. */
  readonly name: string
  readonly hint?: string
}

/** A text field that changes one parameter of the URL while the reader types. */
export const TextFilter = ({ label, name, hint }: TextProps) => {
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  /** The text of the field. The URL has it without spaces at its ends, and after a pause: it must not replace what is typed. */
  const text = useSignal(param(name))
  const inUrl = param(name)
  useLayoutEffect(() => {
    if (timer.current === undefined && inUrl !== text.peek().trim()) text.value = inUrl
  }, [inUrl])
  const change = (event: Event): void => {
    const { value } = event.currentTarget as HTMLInputElement
    text.value = value
    clearTimeout(timer.current)
    timer.current = setTimeout(() => {
      timer.current = undefined
      setQuery({ [name]: value.trim(), cursor: '', offset: '' }, { replace: true })
    }, PAUSE_MS)
  }
  return (
    <label>
      {label}
      <input
        type="search"
        name={name}
        value={text.value}
        placeholder={hint}
        spellcheck={false}
        onInput={change}
      />
    </label>
  )
}

interface Props {
  readonly label: string
  readonly children: ComponentChildren
}

/** The filters of a list. Each changes the URL at once, so there is nothing to send. */
export const Filters = ({ label, children }: Props) => (
  <form class="filters" role="search" aria-label={label} onSubmit={(event) => event.preventDefault()}>
    {children}
  </form>
)
