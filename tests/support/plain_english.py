"""A few hundred words of plain English, written for these tests."""

PLAIN_ENGLISH = """\
The ferry leaves the island at half past six, before the sun has cleared the hill behind the \
church. Most mornings there are only four of us on board: the baker, who takes his bread to the \
hotels on the mainland, two women who clean the offices of the harbour company, and me. Nobody \
talks during the first ten minutes. We sit on the benches along the wall, hold our cups with both \
hands, and wait until the boat has passed the last buoy and the water becomes rough. Then the \
baker always says the same thing, that today it will rain, and one of the women always answers \
that he said so yesterday.

I have taken this boat for eleven years. When I began, the crossing took forty minutes and the \
captain was an old man who knew every rock by name. He told me once that he could steer in fog by \
listening to the bell of the church and to the echo of his own engine from the cliffs. Now there \
is a screen in front of the wheel which shows the depth of the water, the speed of the wind and \
the position of every other ship within twenty miles, and the crossing takes twenty-five minutes. \
The new captain is younger than I am. She says that the screen is right almost all of the time, \
and that the rest of the time she looks out of the window.

My work is to repair the instruments that measure the tide. There are nine of them along the \
coast, small grey boxes on posts, each with a pipe that reaches down below the lowest water. A \
float rises and falls in the pipe, a wheel turns, and twice in a minute a number is sent to an \
office in the capital. If a number is missing, somebody calls me. Usually the reason is simple. A \
bird has built its nest on the aerial, or salt has eaten through a wire, or a child has thrown a \
stone. I carry a bag with three spare wheels, a roll of wire, a brush and a lamp, and I have never \
yet met a fault that these could not cure.

People ask whether the sea is rising. I tell them what the boxes say. Over the eleven years the \
average has gone up by about four centimetres, which is the width of three of my fingers. That \
does not sound like much, and on a calm day you would not notice it. But a storm that used to stop \
one step below the door of the fish market now comes in over the sill, and the man who owns the \
market has begun to keep his scales on the upper floor. He is not afraid, he says. He has only \
become careful, as one does with a neighbour who has started to visit without knocking.
"""
