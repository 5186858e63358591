import { type Signal, useSignal } from '@preact/signals'
import { TextField } from '../../parts/fields.tsx'

const SEVERAL_LINES = 'Value: expected one line. Use npx svc secrets set KEY < FILE for several lines.'

/** The value of a secret. The browser neither shows nor stores it. */
export const ValueField = ({ value }: { readonly value: Signal<string> }) => {
  const isRefused = useSignal(false)
  const paste = (event: ClipboardEvent): void => {
    // The field would remove the line breaks of a value such as a PEM key, and store another value.
    isRefused.value = /[\r\n]/.test(event.clipboardData?.getData('text').trimEnd() ?? '')
    if (isRefused.value) event.preventDefault()
  }
  return (
    <TextField
      label="Value"
      type="password"
      required
      value={value.value}
      error={isRefused.value ? SEVERAL_LINES : ''}
      onPaste={paste}
      onChange={(text) => (value.value = text)}
    />
  )
}
