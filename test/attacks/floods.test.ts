import { type Attack, attackSuite } from './attack.ts'
import { boundedMemory } from './boundedMemory.ts'
import { flood, LARGE, repeating, writing } from './flood.ts'

const DEEP = `'{"type":"host","id":1,"call":0,"request":{"op":"emit","data_type":"x","payload":' + '{"a":'.repeat(900) + '1' + '}'.repeat(900) + '}}'`
const floods: Readonly<Record<string, string>> = {
  console: repeating(`const line = 'x'.repeat(1000)`, `for (let n = 0; n < 1000; n++) console.log(line)`),
  stderr: writing(`Buffer.from('x'.repeat(1000))`, 2),
  'large-log-frames': writing(LARGE),
  'deep-objects': writing(`frame(${DEEP})`),
}

attackSuite(
  'floods of output and of frames',
  Object.entries(floods).map(([name, code]): Attack => ({
    id: `A/12-floods/${name}`,
    attempt: `flood the service with ${name}`,
    severity: 'medium',
    run: async (target) => `${await flood(target, code)}; ${boundedMemory(target)}`,
  })),
)
