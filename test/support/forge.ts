/** The lines that write a frame to the service as the child's own code does. */
export const FORGE = `
  import { writeSync } from 'node:fs'
  const forge = (...frames) => {
    for (const frame of frames) {
      const json = Buffer.from(JSON.stringify(frame))
      const header = Buffer.alloc(4)
      header.writeUInt32BE(json.length)
      writeSync(3, Buffer.concat([header, json]))
    }
  }
  const idle = () => new Promise(() => setInterval(() => {}, 1000))
`
