#pragma once
// The lexicon of the built-in grammar. Nouns are "singular" or "singular/plural" where the plural is
// irregular; verbs are "base" or "base/past" where the past is.
#include <array>
#include <cstddef>
#include <string_view>

namespace normscope::corpus::words {

using Words = std::string_view;  // separated by spaces; _ stands for a space within a word

struct Topic {
  Words title;
  Words places;      // with preposition and article
  Words persons;     // nouns that can be subjects
  Words things;      // nouns that can be objects
  Words actions;     // transitive verbs: person, thing
  Words doings;      // intransitive verbs of persons
  Words states;      // intransitive verbs of things
  Words adjectives;  // of things
};

inline constexpr std::array<Topic, 10> topics = {{
    {"harbour", "in_the_harbour at_the_pier on_the_quay near_the_lighthouse behind_the_breakwater",
     "sailor captain fisherman/fishermen pilot diver cook",
     "boat net rope anchor sail oar crate lantern compass chart barrel hull mast buoy",
     "repair tow load moor paint launch inspect unload tie/tied scrub",
     "row swim/swam whistle wave dive climb", "drift rock leak sink/sank float creak",
     "wooden rusty heavy wet salty narrow leaky broad"},
    {"farm", "on_the_farm in_the_barn behind_the_stable near_the_well at_the_gate",
     "farmer shepherd milkmaid blacksmith neighbour ploughman/ploughmen",
     "horse goat plough fence pumpkin cart bucket saddle sheep/sheep goose/geese haystack ladder egg field",
     "feed/fed milk mend harvest brush count plant water sell/sold lead/led",
     "plough yawn rest sweat kneel/knelt dig/dug", "grow/grew ripen wander rot bloom multiply/multiplied",
     "muddy brown hungry young fat ripe stubborn gentle"},
    {"kitchen", "in_the_kitchen at_the_stove near_the_oven by_the_sink in_the_pantry",
     "baker cook waiter butcher guest apprentice",
     "loaf/loaves pan knife/knives onion pie kettle spoon pot cake tomato/tomatoes plate recipe pancake "
     "apron",
     "bake peel chop stir taste boil fry/fried wash serve slice",
     "cook hum sneeze hurry/hurried laugh eat/ate", "burn/burnt simmer cool steam crumble smell/smelt",
     "fresh sweet bitter crisp greasy spicy sour warm"},
    {"school", "at_the_school in_the_classroom in_the_yard near_the_blackboard by_the_window",
     "teacher pupil headmaster librarian classmate janitor",
     "book pencil map poem desk notebook globe ruler lesson riddle picture sum essay eraser",
     "read/read write/wrote copy/copied learn explain draw/drew forget/forgot solve borrow correct",
     "study/studied whisper giggle listen think/thought sing/sang",
     "fall/fell matter vanish end fade tear/tore", "difficult short dusty clever boring blank famous neat"},
    {"mountain", "on_the_mountain in_the_valley at_the_summit near_the_glacier below_the_ridge",
     "climber guide hiker hermit ranger skier",
     "tent rope path boot stove cave stream torch blanket flag rucksack bridge sledge pole",
     "cross carry/carried find/found drop pack follow reach burn/burnt hold/held see/saw",
     "climb slip rest shiver ski shout", "melt freeze/froze crack crumble shine/shone echo/echoed",
     "steep frozen icy distant slippery silent thin rocky"},
    {"market", "at_the_market in_the_square near_the_fountain behind_the_stall under_the_arcade",
     "merchant customer beggar porter tailor juggler",
     "carpet coin basket scarf/scarves melon spice candle ring mirror purse cheese lamp vase bargain",
     "buy/bought sell/sold weigh steal/stole wrap offer count polish trade choose/chose",
     "bargain shout wait argue pay/paid stroll", "glitter cost/cost shrink/shrank tumble arrive spoil",
     "cheap precious golden colourful tiny ripe rare foreign"},
    {"library", "in_the_library at_the_archive near_the_shelves by_the_fireplace in_the_reading_room",
     "scholar librarian poet reader translator historian",
     "manuscript letter shelf/shelves dictionary/dictionaries chapter index chair catalogue novel page essay "
     "diary/diaries portrait key",
     "read/read translate hide/hid publish catalogue quote open discover lend/lent bind/bound",
     "read/read dream doze sigh cough frown", "crumble vanish gather_dust remain fade turn_yellow",
     "ancient rare learned yellow secret heavy fragile anonymous"},
    {"workshop", "in_the_workshop at_the_bench near_the_furnace by_the_lathe behind_the_curtain",
     "carpenter clockmaker engineer inventor mechanic glazier",
     "clock hammer engine wheel spring gear table screw pump chain machine bolt saw blade",
     "build/built oil assemble sharpen test break/broke design adjust measure fix",
     "hammer work sweat curse invent experiment", "tick rattle stop rust spin/spun squeak",
     "metal sharp broken noisy precise new complicated useful"},
    {"theatre", "at_the_theatre on_the_stage in_the_orchestra_pit behind_the_scenes near_the_box_office",
     "actor singer violinist conductor dancer pianist",
     "violin costume song mask drum ticket flute play piano/pianos trumpet rehearsal overture wig scene",
     "play rehearse tune compose perform sing/sang applaud record improvise miss",
     "dance sing/sang bow practise tremble smile", "sound begin/began fail echo/echoed succeed rip",
     "loud solemn cheerful slow tragic brilliant lively quiet"},
    {"hospital", "at_the_hospital in_the_ward near_the_pharmacy in_the_laboratory by_the_bed",
     "doctor nurse patient surgeon chemist visitor",
     "bandage pill thermometer bed syringe remedy/remedies wound chart microscope bottle letter needle test "
     "bowl",
     "examine prescribe clean heal change prepare study/studied label/labelled swallow fetch",
     "recover sleep/slept cough groan smile pray", "heal swell work/worked spread/spread disappear dissolve",
     "clean painful dangerous cold mild sterile small infected"},
}};

inline constexpr Words women =
    "Alice Beatrice Clara Diana Edith Flora Greta Helen Irene Julia Katherine Laura Margaret Nora Olivia "
    "Paula "
    "Rosa Sophie Theresa Ursula";
inline constexpr Words men =
    "Albert Bernard Conrad Daniel Edgar Felix George Henry Isaac Jacob Karl Leonard Martin Nicholas Oscar "
    "Peter "
    "Robert Simon Thomas Victor";
inline constexpr Words adjectives_of_persons =
    "old young tired honest clever patient angry curious friendly careful proud lonely nervous cheerful "
    "brave";
inline constexpr Words adjectives_of_things =
    "old new small large beautiful strange green red blue white black empty expensive ordinary strong";
inline constexpr Words manners =
    "slowly quickly quietly carefully proudly happily sadly again early together gladly badly suddenly often";
inline constexpr Words times_past =
    "yesterday last_night in_the_morning one_evening last_winter after_the_storm before_dawn on_Sunday "
    "two_days_ago that_afternoon";
inline constexpr Words times_present =
    "today every_morning on_Mondays at_noon in_winter in_the_evening after_lunch on_holidays each_spring now";
inline constexpr Words reasons = "because when while although before after until since";
inline constexpr Words numbers = "zero one two three four five six seven eight nine ten eleven twelve";
inline constexpr Words beliefs =
    "say/said believe know/knew think/thought hope claim suspect remember admit/admitted fear";

inline constexpr Words reviewed =
    "film book meal play concert hotel song novel performance story exhibition restaurant show album lecture "
    "game";
inline constexpr Words aspects =
    "plot music service cast ending food dialogue beginning lighting price view title second_part humour "
    "style pace";
inline constexpr Words praise =
    "good wonderful brilliant charming excellent moving delightful funny superb fresh gripping beautiful "
    "clever warm "
    "perfect honest impressive lovely memorable thrilling elegant touching enjoyable splendid";
inline constexpr Words blame =
    "bad awful dull boring terrible clumsy tedious poor dreadful stale annoying ugly stupid cold "
    "disappointing false "
    "weak horrible forgettable tiresome shallow pointless unpleasant confusing";
inline constexpr Words degrees = "very really quite truly rather extremely simply";
inline constexpr Words denials = "not never hardly not_at_all";

}  // namespace normscope::corpus::words
