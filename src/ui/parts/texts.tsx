import { signal, useSignal } from '@preact/signals'
import { type ComponentChildren, Fragment } from 'preact'
import type { RunStatus } from '../../client/index.ts'
import { isUnanswered, textOf } from '../frame/api.ts'
import { serviceNow } from '../frame/serviceClock.ts'

/** Counts the times at which all relative times are rendered again. */
const ticks = signal(0)
setInterval(() => ticks.value++, 10_000)

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1000],
] as const

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })

const ago = (at: number): string => {
  const ms = at - serviceNow()
  const [unit, length] = UNITS.find(([, one]) => Math.abs(ms) >= one) ?? (['second', 1000] as const)
  return relative.format(Math.round(ms / length), unit)
}

/** A time relative to the present, with the exact one in its title. */
export const Time = ({ at }: { readonly at: string | null | undefined }) => {
  void ticks.value
  return at ? (
    <time dateTime={at} title={at}>
      {ago(Date.parse(at))}
    </time>
  ) : (
    <span class="hint">–</span>
  )
}

/** A number of things for people. */
export const countText = (count: number, one: string): string =>
  `${count.toLocaleString('en')} ${count === 1 ? one : `${one}s`}`

const SIZES = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'] as const

/** A number of bytes for people. */
export const sizeText = (bytes: number): string => {
  const step = Math.min(SIZES.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10))
  return step === 0 ? countText(bytes, 'byte') : `${(bytes / 1024 ** step).toFixed(1)} ${SIZES[step]}`
}

/** The statuses of runs in the words of the dashboard. */
export const STATUS_TEXTS: Record<RunStatus, string> = {
  running: 'Running',
  succeeded: 'Succeeded',
  failed: 'Failed',
  cancelled: 'Cancelled',
  pending_retry: 'Waits for retry',
}

/** The status of a run: a text and a shape, not the color alone. */
export const Status = ({ status }: { readonly status: RunStatus }) => (
  <span class={`status ${status}`}>{STATUS_TEXTS[status]}</span>
)

/** A name that is broken after its separators, if it must be broken. */
export const Name = ({ of }: { readonly of: string }) => (
  <>
    {of.split(/(?<=[/.:_-])/).map((part, index) => (
      <Fragment key={index}>
        {index > 0 && <wbr />}
        {part}
      </Fragment>
    ))}
  </>
)

/** The end of an id: ids of the same minute begin with the same digits. */
export const shortId = (id: string): string => `…${id.slice(-8)}`

/** Copies a text; resolves with what to report. */
const copy = async (text: string): Promise<string> => {
  // TypeScript does not know that plain HTTP has none, except on this machine.
  const clipboard = navigator.clipboard as Clipboard | undefined
  if (!clipboard) return 'The browser copies on HTTPS pages only. Select the text instead.'
  try {
    await clipboard.writeText(text)
    return 'Copied'
  } catch (error) {
    return `The browser refused to copy: ${textOf(error)}. Select the text instead.`
  }
}

interface CopyProps {
  readonly text: string
  readonly label?: string
  readonly isSecret?: boolean
}

/** A button that copies a text. It reports beside itself: a dialog covers the notices. */
export const Copy = ({ text, label = 'Copy', isSecret = false }: CopyProps) => {
  const outcome = useSignal('')
  return (
    <>
      <button
        type="button"
        class="plain small"
        title={isSecret ? undefined : `Copies ${text.slice(0, 60)}`}
        onClick={async () => (outcome.value = await copy(text))}
      >
        {label}
      </button>{' '}
      <span class="hint" role="status">
        {outcome}
      </span>
    </>
  )
}

/** Shown until the first reply. */
export const Loading = () => <p role="status">Loading…</p>

/** An empty list, with the command or the action that fills it. */
export const Empty = ({
  children,
  command,
}: {
  readonly children: ComponentChildren
  readonly command?: string
}) => (
  <div class="empty">
    <p>{children}</p>
    {command !== undefined && (
      <p>
        <code>{command}</code> <Copy text={command} />
      </p>
    )}
  </div>
)

/** Why something was refused; nothing if the text is empty. */
export const Alert = ({ text }: { readonly text: string }) =>
  text === '' ? null : (
    <p class="failure" role="alert">
      {text}
    </p>
  )

/** Why something could not be loaded, with a way to try again. */
export const Failure = ({ error, retry }: { readonly error: Error; readonly retry?: () => void }) => (
  <div class="failure" role="alert">
    {textOf(error)} {retry && isUnanswered(error) && 'The page tries again when it does. '}
    {retry && (
      <button type="button" class="plain" onClick={retry}>
        Try again
      </button>
    )}
  </div>
)
