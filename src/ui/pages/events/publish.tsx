import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { api } from '../../frame/api.ts'
import { linkTo } from '../../frame/router.ts'
import { may, maySome, refusalOf } from '../../frame/session.ts'
import { Action } from '../../parts/action.tsx'
import { TextField } from '../../parts/fields.tsx'
import { fieldJson, JsonField, useJsonText } from '../../parts/jsonField.tsx'

interface Props {
  /** The types to suggest. */
  readonly types: readonly string[]
  readonly event_type: string
  readonly onDone: () => void
}

/** Publishes an event. The data begins as that of the newest event of the type, so that its shape is right. */
export const Publish = ({ types, event_type, onDone }: Props) => {
  const type = useSignal('')
  const json = useJsonText('Data', '{}')
  const stream_id = useSignal('')
  const hasEdited = useRef(false)

  const prefill = async (): Promise<void> => {
    if (hasEdited.current || type.value === '' || !may('event', 'read')) return
    const wanted = type.value
    const { data } = await api.events.list({ event_type: wanted, limit: 1 })
    const [newest] = data
    if (newest && !newest.event_data_ref && wanted === type.value && !hasEdited.current)
      json.text.value = fieldJson(newest.event_data)
  }

  const publish = async (idempotencyKey: string) => {
    const options = {
      idempotencyKey,
      ...(stream_id.value && { stream_id: stream_id.value.trim() }),
    }
    const event = await api.send(type.value, json.read(), options)
    onDone()
    return (
      <>
        Published. {startsText(event.handlers)} <a href={linkTo('/runs', { event: event.event_id })}>Runs</a>{' '}
        <a href={linkTo(`/streams/${event.stream_id}`)}>Stream</a>{' '}
        <a href={linkTo('/events', { event: event.event_id })}>Event</a>
      </>
    )
  }

  return (
    <Action
      label="Publish"
      does="Publishes an event: each function that handles its type runs once."
      refusal={maySome('event', 'create') ? undefined : refusalOf('event', 'create')}
      onOpen={() => {
        hasEdited.current = false
        json.problem.value = ''
        type.value = event_type
        stream_id.value = ''
        json.text.value = '{}'
        prefill().catch(() => {}) // the reader writes the data then
      }}
      run={publish}
    >
      <TextField
        label="Event type"
        required
        suggestions={types}
        value={type.value}
        onChange={(value) => {
          type.value = value
          prefill().catch(() => {})
        }}
      />
      <JsonField label="Data as JSON" rows={10} json={json} onEdit={() => (hasEdited.current = true)} />
      <TextField
        label="Stream to continue, or empty for a new one"
        value={stream_id.value}
        onChange={(value) => (stream_id.value = value)}
      />
    </Action>
  )
}

const startsText = (handlers: number | undefined): string => {
  if (handlers === undefined) return ''
  if (handlers === 0) return 'No deployed function handles this type.'
  return handlers === 1 ? 'It starts 1 function.' : `It starts ${handlers} functions.`
}
