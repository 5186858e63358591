import { eventStoreContract } from '../../contracts/eventStore.ts'
import { openOn, openOnStandIn } from '../../contracts/eventStore/openEventStoreDb.ts'
import { engineUrl, reportExercised } from '../../support/engines.ts'

reportExercised('EventStoreDB stand-in')
eventStoreContract('EventStoreDB stand-in', openOnStandIn)

const real = engineUrl('eventStore')
if (real !== null) eventStoreContract('EventStoreDB', () => openOn(real))
