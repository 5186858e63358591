import { files, fn, send } from 'svc'

interface Note {
  readonly text: string
  readonly from: string
}

/** Receives notes of the customer's devices, each with a service key of its own. */
export const fromDevice = fn(
  { webhook: { service: 'devices', path: '/notes', auth: 'required' } },
  async ({ body, auth }) => {
    const { device } = auth?.metadata as { device: string } // of the service key
    const note: Note = { text: String(body?.text), from: device }
    const { event_id } = await send('note:added', note)
    return { status: 202, body: { event_id } }
  },
)

/** Stores each note in the files of the customer. */
export const onAdded = fn({ 'on-event': 'note:added' }, async (event) => {
  const { text, from }: Note = event.data
  const { path } = await files.put(`notes/${event.id}.txt`, `${from}: ${text}\n`)
  return { path }
})

export const list = async () => {
  const found = await files.list({ prefix: 'notes/', limit: 100 })
  return Promise.all(found.map(async ({ path }) => new TextDecoder().decode((await files.get(path)).content)))
}
