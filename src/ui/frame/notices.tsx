import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'

interface Notice {
  readonly id: number
  readonly kind: 'done' | 'failed'
  readonly content: ComponentChildren
}

const notices = signal<readonly Notice[]>([])
let next = 0

/** Notices of what was done disappear after this time; failures remain until they are closed. */
const SHOWN_MS = 8000
const MOST = 4

const show = (kind: Notice['kind'], content: ComponentChildren): void => {
  const id = next++
  notices.value = [...notices.value, { id, kind, content }].slice(-MOST)
  if (kind === 'done') setTimeout(() => close(id), SHOWN_MS)
}

const close = (id: number): void => {
  notices.value = notices.value.filter((notice) => notice.id !== id)
}

/** Reports what an action did. */
export const reportDone = (content: ComponentChildren): void => show('done', content)

/** Reports why an action failed. */
export const reportFailed = (content: ComponentChildren): void => show('failed', content)

export const Notices = () => (
  <div class="notices" role="status" aria-live="polite">
    {notices.value.map(({ id, kind, content }) => (
      <div key={id} class={`notice ${kind}`}>
        <div>{content}</div>
        <button type="button" class="plain" aria-label="Close the notice" onClick={() => close(id)}>
          ×
        </button>
      </div>
    ))}
  </div>
)
