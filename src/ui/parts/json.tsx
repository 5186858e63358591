import { useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { Copy } from './texts.tsx'

/** More characters would make the page slow; they are shown on demand. */
const SHOWN = 20_000
/** Even on demand, the page shows no more. The download has everything. */
const MOST = 500_000

/** A value as indented JSON. Large ones are cut and can be downloaded. */
export const Json = ({ value, name = 'value' }: { readonly value: unknown; readonly name?: string }) => {
  const isWhole = useSignal(false)
  const text = useMemo(() => JSON.stringify(value, null, 2) ?? 'undefined', [value])
  const limit = isWhole.value ? MOST : SHOWN
  const isCut = text.length > limit
  return (
    <div class="json">
      <pre tabIndex={0} role="region" aria-label={name}>
        {isCut ? `${text.slice(0, limit)}…` : text}
      </pre>
      <div class="buttons">
        <Copy text={text} />
        {text.length > SHOWN && !isWhole.value && (
          <button type="button" class="plain small" onClick={() => (isWhole.value = true)}>
            Show {text.length > MOST ? 'more' : 'everything'}
          </button>
        )}
        {text.length > SHOWN && (
          <button type="button" class="plain small" onClick={() => saveText(`${name}.json`, text)}>
            Download
          </button>
        )}
      </div>
    </div>
  )
}

const saveText = (file: string, text: string): void =>
  saveBlob(file, new Blob([text], { type: 'application/json' }))

/** Saves content as a file of the browser. */
export const saveBlob = (file: string, content: Blob): void => {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(content)
  link.download = file
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}
