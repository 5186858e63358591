import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import * as assert from 'uvu/assert'
import { FRAME, type Frame, FrameReader, jsonFrame, MAX_STREAMS } from '../../src/egress/frames.ts'
import { openEgress } from '../../src/egress/openEgress.ts'
import { parseOperatorAllow, NOTHING_ALLOWED } from '../../src/egress/operatorAllow.ts'
import { newId } from '../../src/ids.ts'
import { socketPair } from '../support/socketPair.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

const shares = suite('the connections of a node')

shares('an organization has a share, and a crowded node keeps places for the others', async () => {
  const server = createServer((socket) => socket.on('error', () => {}).resume()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const egress = openEgress({
    resolve: () => Promise.reject(new Error('no name is resolved here')),
    allow: parseOperatorAllow('127.0.0.1') ?? NOTHING_ALLOWED,
    ownPorts: () => new Set(),
    networkOf: () => null,
  })
  const pipes: Socket[] = []
  /** Opens connections in a new child; returns how many were opened and how many were refused. */
  const openIn = async (org_id: string, count: number) => {
    const [pipe, child] = await socketPair()
    pipes.push(pipe)
    pipe.on('error', () => {})
    child.on('error', () => {})
    egress.serve(
      { org_id, env_id: newId(), project_id: newId(), build_id: newId(), hash: 'h', rights: {} },
      pipe,
    )
    const frames: Frame[] = []
    const reader = new FrameReader()
    child.on('data', (chunk: Buffer) => {
      reader.add(chunk)
      for (let frame = reader.next(); frame; frame = reader.next()) frames.push(frame)
    })
    for (let id = 1; id <= count; id++)
      child.write(jsonFrame(FRAME.open, id, { host: '127.0.0.1', port, family: 0 }))
    await until(() => frames.length === count)
    return frames.filter(({ kind }) => kind === FRAME.opened).length
  }
  try {
    assert.equal([await openIn('a', MAX_STREAMS), await openIn('a', MAX_STREAMS)], [256, 256])
    assert.is(await openIn('a', 5), 0)
    for (const org_id of ['b', 'c']) await Promise.all([openIn(org_id, 256), openIn(org_id, 256)])
    assert.is(await openIn('d', 100), 64)
    assert.is(await openIn('e', 10), 10)
    pipes[0]?.destroy()
    await until(async () => (await openIn('a', 1)) === 1)
  } finally {
    for (const pipe of pipes) pipe.destroy()
    egress.close()
    server.close()
  }
})

shares.run()
