/** One server-sent event. */
export interface Message {
  readonly id: string
  readonly event: string
  readonly data: string
}

/** The longest block in characters: a run can have a result of 6 MiB. */
const MAX_BLOCK = 16 << 20

/**
 * Reads a `text/event-stream` (HTML Living Standard, 9.2.6). An event that is cut off is left out, because the reader
 * resumes before it. `onComment` is called for each comment, such as a heartbeat.
 */
export async function* messagesOf(
  body: AsyncIterable<Uint8Array>,
  onComment: () => void = () => {},
): AsyncGenerator<Message, void, undefined> {
  const decoder = new TextDecoder()
  let rest = ''
  let block = emptyBlock()
  for await (const chunk of body) {
    rest += decoder.decode(chunk, { stream: true })
    // A trailing \r may be the first half of \r\n.
    const end = rest.endsWith('\r') ? rest.length - 1 : rest.length
    const lines = rest.slice(0, end).split(/\r\n|\n|\r/)
    rest = (lines.pop() ?? '') + rest.slice(end)
    for (const line of lines) {
      if (line !== '') {
        if (line.startsWith(':')) onComment()
        else addLine(block, line)
        continue
      }
      if (block.data !== null) yield { id: block.id, event: block.event, data: block.data }
      block = emptyBlock()
    }
    if (rest.length + (block.data?.length ?? 0) > MAX_BLOCK)
      throw new RangeError(`Expected server-sent events of at most ${MAX_BLOCK} characters`)
  }
}

interface OpenBlock {
  id: string
  event: string
  data: string | null
}

const emptyBlock = (): OpenBlock => ({ id: '', event: 'message', data: null })

const addLine = (block: OpenBlock, line: string): void => {
  const colon = line.indexOf(':')
  const field = colon === -1 ? line : line.slice(0, colon)
  const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
  if (field === 'data') block.data = block.data === null ? value : `${block.data}\n${value}`
  else if (field === 'event') block.event = value
  else if (field === 'id' && !value.includes('\0')) block.id = value
}
