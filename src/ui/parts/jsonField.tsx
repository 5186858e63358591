import { type Signal, useSignal } from '@preact/signals'
import { textOf } from '../frame/api.ts'
import { visible } from '../frame/visibleTexts.ts'
import { ShownAtField } from './action.tsx'
import { TextField } from './fields.tsx'

/** What the reader writes, and why it is refused; empty if it is not. */
export interface JsonText {
  readonly text: Signal<string>
  readonly problem: Signal<string>
  /** The value. Refuses other texts at the field. */
  readonly read: () => unknown
  /** The same, for a list such as `[1, 2]`. */
  readonly readList: () => readonly unknown[]
}

/** A value as the text of a field. */
export const fieldJson = (value: unknown): string => visible(JSON.stringify(value, null, 2))

/** A text that becomes JSON when its dialog is sent. `name` begins its errors. */
export const useJsonText = (name: string, initial: string): JsonText => {
  const text = useSignal(initial)
  const problem = useSignal('')
  const refuse = (reason: string, cause?: unknown): never => {
    problem.value = `${name}: ${reason}`
    throw new ShownAtField(problem.value, { cause })
  }
  const read = (): unknown => {
    problem.value = ''
    try {
      return JSON.parse(text.value)
    } catch (error) {
      return refuse(`expected JSON, got ${textOf(error)}`, error)
    }
  }
  const readList = (): readonly unknown[] => {
    const value = read()
    return Array.isArray(value) ? value : refuse('expected a list such as [1, 2]')
  }
  return { text, problem, read, readList }
}

interface Props {
  readonly label: string
  readonly json: JsonText
  readonly rows: number
  readonly onEdit?: () => void
}

export const JsonField = ({ label, json: { text, problem }, rows, onEdit }: Props) => (
  <TextField
    label={label}
    rows={rows}
    value={text.value}
    error={problem.value}
    onChange={(value) => {
      text.value = value
      problem.value = ''
      onEdit?.()
    }}
  />
)
