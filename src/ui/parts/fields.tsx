import type { TargetedEvent } from 'preact'
import { useId } from 'preact/hooks'
import { Alert } from './texts.tsx'

interface Props {
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
  readonly type?: 'text' | 'password' | 'number'
  readonly required?: boolean
  readonly placeholder?: string
  readonly maxLength?: number
  readonly min?: number
  readonly size?: number
  readonly onPaste?: (event: ClipboardEvent) => void
  /** Help below the field. */
  readonly hint?: string
  /** Why the value is refused; empty or missing if it is not. */
  readonly error?: string
  /** A field of several lines. */
  readonly rows?: number
  /** Texts to choose from while the reader types. */
  readonly suggestions?: readonly string[]
}

/** A text field with its label, help and error. */
export const TextField = ({
  label,
  value,
  onChange,
  hint,
  error = '',
  rows,
  suggestions,
  type = 'text',
  ...attributes
}: Props) => {
  const id = useId()
  const kind = type as 'text' // the types of preact forbid a union
  const given = {
    value,
    spellcheck: false,
    'aria-invalid': error !== '',
    'aria-describedby': error || hint ? id : undefined,
    onInput: ({ currentTarget }: TargetedEvent<HTMLInputElement | HTMLTextAreaElement>) =>
      onChange(currentTarget.value),
  }
  return (
    <div class="field">
      <label>
        {label}
        {rows === undefined ? (
          <input
            type={kind}
            list={suggestions && `${id}-list`}
            autocomplete="off"
            autocapitalize="off"
            {...attributes}
            {...given}
          />
        ) : (
          <textarea rows={rows} required={attributes.required} {...given} />
        )}
      </label>
      {suggestions && (
        <datalist id={`${id}-list`}>
          {suggestions.map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
      )}
      {(error || hint) && <div id={id}>{error ? <Alert text={error} /> : <p class="hint">{hint}</p>}</div>}
    </div>
  )
}

interface CheckboxProps {
  readonly label: string
  readonly isChecked: boolean
  readonly onChange: (isChecked: boolean) => void
}

export const Checkbox = ({ label, isChecked, onChange }: CheckboxProps) => (
  <label class="inline">
    <input
      type="checkbox"
      checked={isChecked}
      onChange={({ currentTarget }) => onChange(currentTarget.checked)}
    />
    {label}
  </label>
)

interface ChoiceProps<Value extends string> {
  readonly label: string
  readonly value: Value
  readonly options: readonly (readonly [value: Value, text: string])[]
  readonly onChange: (value: Value) => void
  /** The label is beside the field. */
  readonly isInline?: boolean
}

/** One of several values. */
export const Choice = <Value extends string>({
  label,
  value,
  options,
  onChange,
  isInline = false,
}: ChoiceProps<Value>) => (
  <label class={isInline ? 'inline' : ''}>
    {label}
    <select
      value={value}
      onChange={({ currentTarget }) => {
        const chosen = options.find(([one]) => one === currentTarget.value)
        if (chosen) onChange(chosen[0])
      }}
    >
      {options.map(([one, text]) => (
        <option key={one} value={one}>
          {text}
        </option>
      ))}
    </select>
  </label>
)
